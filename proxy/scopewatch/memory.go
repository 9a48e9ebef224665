package scopewatch

import (
	"github.com/go-json-experiment/json/jsontext"
)

// memory is what the feed has told: live sessions by owner and ref, and which
// owners have synced. It tells only what is certain.
type memory struct {
	owners map[Principal]*ownerMemory

	// A set that comes in pages counts when it is whole.
	pages   map[Principal]map[string]session
	synced  []Principal
	gathers bool
}

type ownerMemory struct {
	synced bool
	live   map[string]session
}

type session struct {
	epoch uint64
	stamp jsontext.Value
}

// judge decides from memory. It is false when memory can't tell: a session that
// is missing while its owner has not synced is neither ended nor live.
func (m *memory) judge(b Binding) (Verdict, bool) {
	o := m.owners[b.Owner]
	if o == nil {
		return held(), false
	}
	s, isLive := o.live[b.Ref]
	switch {
	case isLive && s.epoch == b.Epoch:
		return live(s.stamp), true
	case isLive:
		return dead(Replaced), true
	case o.synced:
		return dead(Ended), true
	}
	return held(), false
}

// event is one frame of the feed.
type event struct {
	Cursor *cursor          `json:"cursor"`
	Kind   string           `json:"kind"`
	Owner  Principal        `json:"owner"`
	Ref    string           `json:"ref"`
	Epoch  uint64           `json:"scope_epoch"`
	Scope  jsontext.Value   `json:"scope"`
	Synced []Principal      `json:"owners_synced"`
	Scopes []jsontext.Value `json:"scopes"`
	More   bool             `json:"more"`
}

// cursor is a place in the feed of one incarnation.
type cursor struct {
	Incarnation string `json:"daemon_incarnation"`
	Seq         uint64 `json:"seq"`
}

// stampHead is what of a stamp names its session.
type stampHead struct {
	Owner Principal `json:"owner"`
	Ref   string    `json:"ref"`
	Epoch uint64    `json:"scope_epoch"`
}

// abandon forgets the pages of a set that will not become whole.
func (m *memory) abandon() { m.pages, m.synced, m.gathers = nil, nil, false }

// gather takes a page of a set and reports whether the set is whole.
func (m *memory) gather(e *event) (whole bool, err error) {
	if !m.gathers {
		m.pages, m.synced, m.gathers = map[Principal]map[string]session{}, nil, true
	}
	m.synced = append(m.synced, e.Synced...)
	for _, stamp := range e.Scopes {
		var h stampHead
		if err := decode(stamp, &h); err != nil {
			return false, err
		}
		if m.pages[h.Owner] == nil {
			m.pages[h.Owner] = map[string]session{}
		}
		m.pages[h.Owner][h.Ref] = session{h.Epoch, stamp}
	}
	return !e.More, nil
}

// replace makes a whole snapshot all that is known.
func (m *memory) replace() {
	m.owners = map[Principal]*ownerMemory{}
	for p, live := range m.pages {
		m.owners[p] = &ownerMemory{live: live}
	}
	for _, p := range m.synced {
		m.owner(p).synced = true
	}
	m.abandon()
}

// replaceOwner makes a whole first sync all that is known of its owner: a session
// of the owner's that is not in it has ended.
func (m *memory) replaceOwner(p Principal) {
	live := m.pages[p]
	if live == nil {
		live = map[string]session{}
	}
	m.owners[p] = &ownerMemory{synced: true, live: live}
	m.abandon()
}

func (m *memory) owner(p Principal) *ownerMemory {
	o := m.owners[p]
	if o == nil {
		o = &ownerMemory{live: map[string]session{}}
		m.owners[p] = o
	}
	return o
}

// put takes a created or changed session.
func (m *memory) put(e *event) { m.owner(e.Owner).live[e.Ref] = session{e.Epoch, e.Scope} }

// end takes the end of a session. Another one under its ref stays.
func (m *memory) end(e *event) {
	live := m.owner(e.Owner).live
	if live[e.Ref].epoch == e.Epoch {
		delete(live, e.Ref)
	}
}
