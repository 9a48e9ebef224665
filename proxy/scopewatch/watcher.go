package scopewatch

import (
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"scopeward/proxy/wire"
)

// Conn is the provider's registered module connection. Its methods are called
// under the watcher's lock: they must not wait for [Watcher.Take]. Send keeps
// the order of frames; what can't be sent is dropped, and [Watcher.Lost] follows.
type Conn interface {
	// NewCorr takes the connection's next corr.
	NewCorr() uint64
	// Send sends one frame. Its length is body's.
	Send(h wire.Header, body []byte)
}

// Params are what a watcher is made of. None is required.
type Params struct {
	// Owners are those whose scopes are followed, nil for all. What is bound to
	// another owner's is asked with scope.describe.
	Owners []Principal
	// Bound is how long [Watcher.Hold] waits at most; 0 and everything above is
	// the contract's 45 s.
	Bound time.Duration
	// Interval is how often scope.describe is asked again where the feed does not
	// tell (section 7); 0 is 5 s.
	Interval time.Duration
}

const (
	// MaxHold is how long a live call waits at most for an owner to sync (section
	// 5).
	MaxHold = 45 * time.Second

	defaultInterval = 5 * time.Second
	// answerTimeout bounds one scope.describe.
	answerTimeout = 5 * time.Second
)

// Watcher follows scopes. It is safe for concurrent use.
type Watcher struct {
	p Params

	mu       sync.Mutex
	conn     Conn // nil while there is none
	follows  bool // the connection serves scope.subscribe
	corr     uint64
	resumes  bool // the subscription began with since
	current  bool // memory is what the feed has told: a snapshot is whole and followed
	last     *cursor
	memory   memory
	asks     map[uint64]*ask
	byKey    map[key]*ask // scope.describe under way
	waiting  map[key]*signal
	problems error // why the feed was given up, nil while it was not
}

// New makes a watcher. It knows nothing until [Watcher.Follow].
func New(p Params) *Watcher {
	if p.Bound <= 0 || p.Bound > MaxHold {
		p.Bound = MaxHold
	}
	if p.Interval <= 0 {
		p.Interval = defaultInterval
	}
	return &Watcher{p: p, asks: map[uint64]*ask{}, byKey: map[key]*ask{}, waiting: map[key]*signal{}}
}

// Follow begins to follow over a connection whose Hello was accepted. ops are
// the ack's subc_ops: without scope.subscribe among them, scope.describe is asked
// each time. Every earlier connection is forgotten, and with it all that it told:
// it may have been another incarnation's.
func (w *Watcher) Follow(c Conn, ops []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loseLocked()
	w.conn, w.follows, w.problems = c, slices.Contains(ops, wire.OpScopeSubscribe), nil
	if w.follows {
		w.subscribeLocked(nil)
	}
	w.wakeAllLocked()
}

// Lost says that the connection has ended. Until the next [Watcher.Follow]
// nothing is known, so everything is held.
func (w *Watcher) Lost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loseLocked()
	w.wakeAllLocked()
}

func (w *Watcher) loseLocked() {
	w.conn, w.follows, w.current, w.last, w.corr = nil, false, false, nil, 0
	w.memory = memory{}
	for corr, a := range w.asks {
		w.answerLocked(corr, a, description{}, false)
	}
}

// subscribeBody is a scope.subscribe.
type subscribeBody struct {
	Op     string      `json:"op"`
	Since  *cursor     `json:"since,omitzero"`
	Owners []Principal `json:"owners,omitempty"`
}

// subscribeLocked asks for the events behind since, or for a snapshot.
func (w *Watcher) subscribeLocked(since *cursor) {
	w.memory.abandon()
	w.current, w.resumes = false, since != nil
	w.corr = w.conn.NewCorr()
	w.conn.Send(wire.Header{Type: wire.Request, Corr: w.corr},
		wire.MustMarshal(subscribeBody{wire.OpScopeSubscribe, since, w.p.Owners}))
}

// Take looks at a frame that came and returns whether it was the watcher's. The
// body is not kept.
func (w *Watcher) Take(f wire.Frame) bool {
	if f.Channel != wire.ControlChannel {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.asks[f.Corr]; a != nil {
		switch f.Type {
		case wire.Response:
			var d description
			err := decode(f.Body, &d)
			w.answerLocked(f.Corr, a, d, err == nil)
		case wire.Error:
			w.answerLocked(f.Corr, a, description{}, false)
		default:
			return false
		}
		return true
	}
	if w.conn == nil || !w.follows || f.Corr != w.corr {
		return false
	}
	switch f.Type {
	case wire.StreamData:
		var e event
		if err := decode(f.Body, &e); err != nil {
			w.giveUpLocked(err)
			return true
		}
		w.hearLocked(&e)
	case wire.Error:
		var b wire.ErrorBody
		_ = decode(f.Body, &b)
		w.refusedLocked(b)
	case wire.StreamEnd:
		w.giveUpLocked(errEnded)
	default:
		return false
	}
	return true
}

// hearLocked takes one frame of the feed. A set counts when it is whole, and with
// it its cursor.
func (w *Watcher) hearLocked(e *event) {
	switch e.Kind {
	case kindSnapshot, kindSynced:
		whole, err := w.memory.gather(e)
		if err != nil {
			w.giveUpLocked(err)
			return
		}
		if !whole {
			return
		}
		if e.Kind == kindSnapshot {
			w.memory.replace()
			w.current = true
			w.wakeAllLocked()
		} else {
			w.memory.replaceOwner(e.Owner)
			w.wakeOwnerLocked(e.Owner)
		}
	case kindCreated, kindChanged:
		w.memory.put(e)
		w.wakeLocked(key{e.Owner, e.Ref})
	case kindEnded:
		w.memory.end(e)
		w.wakeLocked(key{e.Owner, e.Ref})
	}
	// An event of a kind that is not known yet moves the cursor alone.
	if e.Cursor != nil {
		w.last = e.Cursor
	}
	if w.resumes && !w.current {
		w.current = true
		w.wakeAllLocked()
	}
}

// The kinds of frames of the feed.
const (
	kindSnapshot = "snapshot"
	kindSynced   = "synced"
	kindCreated  = "created"
	kindChanged  = "changed"
	kindEnded    = "ended"
)

// refusedLocked takes the end of a subscription. One that was cut resumes where
// it was; a cursor that is no good leads to a new snapshot; everything else to
// scope.describe.
func (w *Watcher) refusedLocked(b wire.ErrorBody) {
	switch b.Code {
	case wire.CodeSubscriberLagged:
		w.subscribeLocked(w.last)
	case wire.CodeCursorTooOld, wire.CodeCursorIncarnation:
		if !w.resumes {
			w.giveUpLocked(errCursor)
			return
		}
		w.last = nil
		w.memory = memory{}
		w.subscribeLocked(nil)
	default:
		w.giveUpLocked(&RefusedError{b.Code, b.Message})
	}
	w.wakeAllLocked()
}

// giveUpLocked goes on with scope.describe alone, until the next connection.
func (w *Watcher) giveUpLocked(why error) {
	w.follows, w.current, w.last, w.memory, w.problems = false, false, nil, memory{}, why
	w.wakeAllLocked()
}

// Err is why the feed of this connection was given up, nil while it is followed
// or where it is not served.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problems
}

// decode reads a body that may have members unknown here.
func decode(body []byte, into any) error { return json.Unmarshal(body, into) }
