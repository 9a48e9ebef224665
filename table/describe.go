package table

import "strconv"

// Status is what scope.describe says of a key (section 5).
type Status uint8

const (
	// StatusLive says that a session is live. Its deadline may have passed.
	StatusLive Status = iota + 1
	// StatusEnded says that one ended in this incarnation and is remembered.
	StatusEnded
	// StatusNotLive says that none is live and none is remembered.
	StatusNotLive
)

var statuses = [...]string{StatusLive: "live", StatusEnded: "ended", StatusNotLive: "not_live"}

// String is the status's wire name.
func (s Status) String() string {
	if int(s) < len(statuses) {
		return statuses[s]
	}
	return ""
}

// Description is scope.describe's answer. Whether the owner is configured is
// known to the caller only.
type Description struct {
	Status      Status
	Epoch       *uint64 // live, or the latest that ended; nil otherwise
	Incarnation string
	OwnerSynced bool
	Scope       *Stamp // exactly when live
}

// Describe reads one key. It neither sweeps nor looks at deadlines, and never
// asks a [TombstoneReader]: ended means ended in this incarnation.
func (t *Table) Describe(k Key) Description {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := Description{Status: StatusNotLive, Incarnation: t.incarnation}
	o := t.owners[k.Owner.ModuleID]
	if o == nil || k.Owner != o.principal {
		return d
	}
	d.OwnerSynced = o.synced
	if s := o.live[k.Ref]; s != nil {
		stamp := s.Stamp()
		d.Status, d.Epoch, d.Scope = StatusLive, &stamp.Epoch, &stamp
	} else if epoch, some := o.tombstones.latest(k.Ref, 0); some {
		d.Status, d.Epoch = StatusEnded, &epoch
	}
	return d
}

// AppendReply appends the reply's body to b.
func (d Description) AppendReply(b []byte, ownerConfigured bool) []byte {
	b = append(b, `{"op":"`+opDescribe+`","status":"`...)
	b = append(append(b, d.Status.String()...), '"')
	if d.Epoch != nil {
		b = appendUint(append(b, `,"scope_epoch":`...), *d.Epoch)
	}
	b = appendString(append(b, `,"daemon_incarnation":`...), d.Incarnation)
	b = strconv.AppendBool(append(b, `,"owner_synced":`...), d.OwnerSynced)
	b = strconv.AppendBool(append(b, `,"owner_configured":`...), ownerConfigured)
	if d.Scope != nil {
		b = d.Scope.AppendJSON(append(b, `,"scope":`...))
	}
	return append(b, '}')
}
