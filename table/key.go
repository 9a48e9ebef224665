package table

import (
	"cmp"
	"fmt"
	"strings"
)

// Key names a scope: a ref is unique within its owner only (section 2).
type Key struct {
	Owner Principal
	Ref   string
}

// ScopeID names one session of a scope. Whatever must not carry over to a new
// session binds to it.
type ScopeID struct {
	Key
	Epoch uint64
}

// String prints id as owner/ref@epoch, fit for a log line.
func (id ScopeID) String() string {
	return fmt.Sprintf("%s/%s@%d", id.Owner, plainName(id.Ref), id.Epoch)
}

// Compare orders ids by owner, ref and epoch.
func (id ScopeID) Compare(other ScopeID) int {
	return cmp.Or(
		id.Owner.Compare(other.Owner),
		strings.Compare(id.Ref, other.Ref),
		cmp.Compare(id.Epoch, other.Epoch),
	)
}

// appendJSON appends the form of a record's parent.
func (id ScopeID) appendJSON(b []byte) []byte {
	b = id.Owner.appendJSON(append(b, `{"owner":`...))
	b = appendString(append(b, `,"ref":`...), id.Ref)
	return append(appendUint(append(b, `,"scope_epoch":`...), id.Epoch), '}')
}

var scopeIDMembers = members{"owner", "ref", "scope_epoch"}

func (r *reader) scopeID() (id ScopeID, err error) {
	s, err := r.object(scopeIDMembers, false, func(i int) (err error) {
		switch i {
		case 0:
			id.Owner, err = r.principal()
		case 1:
			id.Ref, err = r.string()
		case 2:
			id.Epoch, err = r.uint()
		}
		return err
	})
	if err != nil {
		return ScopeID{}, err
	}
	return id, scopeIDMembers.require(s, 0, 1, 2)
}

// Tag is what a bind captures at admission and what its commit compares. Version
// counts content changes within one incarnation and is only ever compared.
type Tag struct {
	ScopeID
	Version uint64
}

// Peer names one registration of one connection. The caller mints it and never
// uses it again after [Table.Leave].
type Peer struct {
	Conn         uint64
	Registration uint32
}

// String prints p as conn.registration.
func (p Peer) String() string { return fmt.Sprintf("%d.%d", p.Conn, p.Registration) }

// Compare orders peers by connection, then by registration.
func (p Peer) Compare(q Peer) int {
	return cmp.Or(cmp.Compare(p.Conn, q.Conn), cmp.Compare(p.Registration, q.Registration))
}

// RouteID names one admitted bind, from its reservation to its release. The
// table mints it and never uses it again; 0 is none.
type RouteID uint64

// Launch is the identity of the launch whose nonce a connection presented: an
// opaque number minted by the caller, 0 for none.
type Launch uint64
