package table

// Record is a scope's content as its owner sent it. It is never changed after
// decoding and may be shared.
type Record struct {
	Ref         string
	Epoch       uint64
	Kind        Kind
	BindProof   *ProofHash // nil: no proof is asked for
	ExpiresAtMS *uint64    // Unix milliseconds; nil: never
	Parent      *ScopeID   // nil: none
	ChildOwners Set[Principal]
	Carriers    Set[Carrier]
	Attributes  Attributes

	digest Digest
}

// Permits says whether p, which is not the owner, may open a route to module.
// Several entries of one principal add up.
func (r *Record) Permits(p Principal, module string) bool {
	for _, c := range r.Carriers.sorted {
		if c.permits(p, ModuleID(module)) {
			return true
		}
	}
	return false
}

// Passed says whether the record has a deadline at or before now, which is Unix
// milliseconds.
func (r *Record) Passed(now int64) bool {
	return r.ExpiresAtMS != nil && *r.ExpiresAtMS <= unsigned(now)
}

// unsigned is now as deadlines are counted: a clock before 1970 is at 0.
func unsigned(now int64) uint64 { return uint64(max(now, 0)) }

// same says whether s holds the content of r: the digests are equal, and so is
// the proof's hash, which no digest holds.
func (r *Record) same(s *Record) bool {
	return r.digest == s.digest && equal(r.BindProof, s.BindProof)
}

// sameParent says whether r and s name the same parent, or both none.
func (r *Record) sameParent(s *Record) bool { return equal(r.Parent, s.Parent) }

// names of a record's members, in the order of the indexes below.
var recordMembers = members{
	"ref", "scope_epoch", "kind", "bind_proof_sha256", "replace_only_if_idle",
	"expires_at_ms", "parent", "child_owners", "carriers", "attributes",
}

const (
	memberRef = iota
	memberEpoch
	memberKind
	memberProof
	memberOnlyIfIdle
	memberExpires
	memberParent
	memberChildOwners
	memberCarriers
	memberAttributes
)

// entry reads one record with what belongs to the request and not to it.
func (r *reader) entry() (e entry, err error) {
	rec := &r.records.take(1, r.left)[0]
	s, err := r.object(recordMembers, false, func(i int) (err error) {
		switch i {
		case memberRef:
			rec.Ref, err = r.string()
		case memberEpoch:
			rec.Epoch, err = r.uint()
		case memberKind:
			rec.Kind, err = r.kind()
		case memberProof:
			rec.BindProof, err = optional(r, r.proof)
		case memberOnlyIfIdle:
			e.onlyIfIdle, err = r.bool()
		case memberExpires:
			rec.ExpiresAtMS, err = optional(r, r.uint)
		case memberParent:
			rec.Parent, err = optional(r, r.scopeID)
		case memberChildOwners:
			rec.ChildOwners, err = r.principals()
		case memberCarriers:
			rec.Carriers, e.targetsInvalid, err = r.carriers()
		case memberAttributes:
			rec.Attributes, err = r.attributes()
		}
		return err
	})
	if err == nil {
		err = recordMembers.require(s, memberRef, memberEpoch, memberKind)
	}
	if err != nil {
		return entry{}, err
	}
	rec.digest = rec.computeDigest()
	e.record = rec
	e.contradiction = rec.Attributes.contradiction()
	return e, nil
}

func (r *reader) principals() (Set[Principal], error) {
	r.principalList = r.principalList[:0]
	err := r.array(func() error {
		p, err := r.principal()
		r.principalList = append(r.principalList, p)
		return err
	})
	return readSet(r, r.principalSet.copy(r.principalList, r.left)), err
}

func (r *reader) carriers() (set Set[Carrier], targetsInvalid bool, err error) {
	r.carrierList = r.carrierList[:0]
	err = r.array(func() error {
		c, inBounds, err := r.carrier()
		r.carrierList = append(r.carrierList, c)
		targetsInvalid = targetsInvalid || !inBounds
		return err
	})
	return readSet(r, r.carrierSet.copy(r.carrierList, r.left)), targetsInvalid, err
}
