package table

// Kind is what a scope stands for. It is closed, and fixed for the life of an
// epoch (section 2).
type Kind uint8

const (
	// Head is an agent's session.
	Head Kind = iota + 1
	// Worker is a session that works for another.
	Worker
	// Ephemeral is a session of one task or run.
	Ephemeral
)

var kinds = [...]string{Head: "head", Worker: "worker", Ephemeral: "ephemeral"}

// String is the kind's wire name, "" for the zero value.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return ""
}

func (r *reader) kind() (Kind, error) {
	k, err := r.choice(kinds[:], "is not head, worker or ephemeral")
	return Kind(k), err
}
