package scopewatch

// Principal is who owns a scope, as the router attests it. Owners are reserved
// modules.
type Principal struct {
	Kind     string `json:"kind"`
	ModuleID string `json:"module_id,omitzero"`
}

// Module is the principal of a supervised module.
func Module(id string) Principal { return Principal{Kind: "reserved", ModuleID: id} }

// Binding is what a stored approval, a grant or running work is bound to: one
// session and no other that reuses its ref (section 2).
type Binding struct {
	Owner Principal
	Ref   string
	Epoch uint64
}

func (b Binding) key() key { return key{b.Owner, b.Ref} }

// key is what at most one session is live under.
type key struct {
	owner Principal
	ref   string
}
