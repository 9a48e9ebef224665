// Package table is the scope table of one incarnation: records, authority,
// generations, expiry, tombstones, parent links, epoch usage and presence, the
// route index with its drains, describe, and the change feed. It is sections 2,
// 3, 5, 5a, 6 and 11 of the contract, and the table's half of section 4.
//
// The package is pure. It opens no socket and no file, leaves no goroutine behind,
// logs nothing and has no clock: now arrives as Unix milliseconds. What happens
// on a wire because of a change is returned as a value, and the caller does it.
//
// A call goes through three steps:
//
//	DecodeSync, DecodeApply   off the lock: strict decoding, sorted sets, digests
//	Table.Sync, Table.Apply   under the lock: authority, generation, body checks,
//	                          then the change is staged beside the state, judged
//	                          as a whole, and committed or forgotten
//	Applied.AppendReply       off the lock: the reply's body
//
// A bind goes through three as well: Reserve judges and captures a tag, Commit
// compares it, Release gives everything back. The tag that a change publishes
// and the drains that it causes are decided in the same locked step, so a commit
// sees either the record before the change, and is drained, or the record after
// it, and is refused.
//
// A refusal is a value with a [Code], never an error. Sets are sets (ADR-0134):
// they compare, digest and serialize in sorted order, whatever order they came in.
package table
