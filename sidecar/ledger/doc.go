// Package ledger is the durable log of identities (ADR-0134): one entry for each
// content that a scope was given and one for each end, chained so that an
// operator can prove what was granted when. With tombstones on, an ended epoch
// stays ended across restarts of sidecar and router.
//
// It is not a database of scopes: nothing is ever restored into a table, and no
// decision but that of a remembered end is made from it. A full or broken disk
// changes no decision either; it is logged, counted, and tried again.
//
// The flow of one accepted call:
//
//	table          Note, under its lock: the change joins a queue in memory
//	writer         takes all that is queued, appends it in one transaction,
//	               fsyncs, and says how far it is durable
//	proxy          Settle, off every lock and driver: the answer waits until its
//	               change is durable, for [Params.Wait] at most
//
// [Open] starts the writer, the only goroutine. [Ledger.Close] lets it write what
// is queued, ends it, and closes the file. The queue is bounded by [MaxQueued];
// what does not fit is lost and counted.
//
// # Entries
//
// An entry holds its number, created_at, the reason, owner, ref and scope_epoch,
// the record, record_sha256 and prefix_sha256. The record is the canonical form of
// package table: its sets are sorted, and bind_proof_sha256 is never in it. A
// change of the proof's hash alone is no new identity and adds no entry. An end
// has a cause in place of a record, and record_sha256 is that of
// {"cause","ref","scope_epoch"}. What an owner omits from its first sync after a
// restart has not ended in any table, and adds no entry.
//
// prefix_sha256 is SHA-256 over, in this order:
//
//	the previous entry's prefix_sha256    32 bytes, zeros before the first
//	this entry's record_sha256            32 bytes
//	the owner's kind and its module id    each as length and bytes
//	the ref                               length and bytes
//	the scope_epoch                       8 bytes
//
// where a length is 8 bytes and every number is big-endian. A kind is its wire
// name; a principal without a module id has an empty one.
//
// # Reading
//
// An entry is read when its scope is next accepted, and only the last one of a
// scope is ([Reading]). One whose hash is that of the content is current. One
// whose hash was taken over sets in the order that it recorded, of the same
// content, is re-keyed: the same entry follows as the next number with the reason
// prefix_hash_canonicalized and two new hashes, the old one stays, and the chain
// goes on from the new one. Anything else is a change. Only imported entries can
// be unsorted. A re-key is the ledger's alone: no version, route or stamp moves,
// and no peer hears of it.
//
// # Bounds
//
// Ends are remembered for [MaxEnds] of each owner, the oldest forgotten first.
// Entries are kept until [Compact] takes them.
package ledger
