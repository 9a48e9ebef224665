package table

// The contract's bounds (section 2). Lists of a call and attributes have theirs
// beside the decoder: [MaxEntries], [MaxAttributeBytes], [MaxCarrierTargets].
const (
	// MaxLiveScopes is how many live scopes an owner may have after a call.
	MaxLiveScopes = 10_000
	// MaxTombstones is how many ended epochs are remembered for an owner. The
	// oldest is forgotten first, and nothing is ever refused for it.
	MaxTombstones = 1_000
	// MaxExpiryAheadMS is how far ahead a new epoch's deadline may be: 24 hours.
	MaxExpiryAheadMS = 86_400_000
	// MaxHolders is how many peers hold presence of an epoch.
	MaxHolders = 8
	// MaxEvents is how many events the change feed keeps, whoever reads it: more
	// than the largest call makes. Each keeps its record alive.
	MaxEvents = 1 << 15
)

// Limits are bounds that a test may lower. A field of zero is the contract's.
type Limits struct {
	LiveScopes int
	Tombstones int
	Events     int
}

func (l Limits) orContract() Limits {
	return Limits{
		LiveScopes: orDefault(l.LiveScopes, MaxLiveScopes),
		Tombstones: orDefault(l.Tombstones, MaxTombstones),
		Events:     orDefault(l.Events, MaxEvents),
	}
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
