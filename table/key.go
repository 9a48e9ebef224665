package table

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

// RouteID names one admitted bind, from its reservation to its release. The
// table mints it and never uses it again; 0 is none.
type RouteID uint64

// Launch is the identity of the launch whose nonce a connection presented: an
// opaque number minted by the caller, 0 for none.
type Launch uint64
