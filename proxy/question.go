package proxy

import (
	"net/netip"
	"sync"

	"scopeward/table"
)

// Peers learns of every accepted connection, so that attribution can say whose
// it is.
type Peers interface {
	// Accepted comes for each connection that greets; its session begins when that
	// returned true. It is false where it would have to wait, and comes again then
	// on a goroutine of its own, where it may.
	Accepted(id ConnID, s Socket, mayWait bool) bool
	// Closed comes once, when nothing more will be asked of it. It must not block.
	Closed(id ConnID)
}

// Socket is an accepted connection as the kernel names it.
type Socket struct {
	Cookie        uint64 // SO_COOKIE of our end; 0: it has none
	Local, Remote netip.AddrPort
}

// Launches knows what only the router knows: the roster, whose launch a nonce
// is, and which of two launches is current. Nothing in it may block.
type Launches interface {
	// Registered says that the router accepted a Hello. The nonce is a secret,
	// "" when none was presented.
	Registered(id ConnID, moduleID, nonce string)
	// Severed says that the registration is about to end by our own act, though
	// neither side meant to leave: its module may have to be started again.
	Severed(id ConnID)
	// Unregistered says that the registration ended: by a Goodbye on channel 0
	// or with its connection.
	Unregistered(id ConnID)
	// Ask calls reply exactly once, from any goroutine, possibly before it
	// returns.
	Ask(q Question, reply func(Answer))
}

// QuestionKind says what is asked.
type QuestionKind uint8

const (
	// AskRoster asks whether ModuleID is a configured module: one in the
	// router's roster, disabled ones included (section 11).
	AskRoster QuestionKind = iota + 1
	// AskStanding asks whether the nonce of the registration on Conn is the
	// current launch's: it decides sync authority (sections 3 and 11).
	AskStanding
	// AskHello asks whether a Hello for ModuleID may pass.
	AskHello
	// AskIdentity asks whether an open may present ModuleID as its
	// consumer_identity.
	AskIdentity
)

// Question is one fact that a session waits for.
type Question struct {
	Kind     QuestionKind
	Conn     ConnID
	ModuleID string
	Nonce    string // secret
}

// Answer is the fact. Only the fields of the question's kind are set.
type Answer struct {
	Configured    bool         // AskRoster
	Launch        table.Launch // AskStanding: which launch, 0 when none is known
	Current       bool         // AskStanding
	Code, Message string       // AskHello, AskIdentity: the refusal, "" when it may pass
}

// asked is what a lane's front frame has been told so far. The frame's handler
// is run again with each answer, so it must change nothing before it asks.
type asked struct {
	serial  uint64 // of the question or job under way
	kind    QuestionKind
	answers map[QuestionKind]Answer
	done    any    // result of a finished job
	read    *split // its body, when that is long
}

// ask returns the answer to q for the frame being handled. When it is not known
// yet, ask parks the lane and returns false: the caller returns at once and is
// run again when it is.
func (s *Session) ask(l *lane, f held, q Question) (Answer, bool) {
	if a, ok := l.asked.answers[q.Kind]; ok {
		return a, true
	}
	l.asked.serial++
	serial := l.asked.serial
	var (
		mu       sync.Mutex
		answer   Answer
		answered bool
		returned bool
	)
	s.world.launches.Ask(q, func(a Answer) {
		mu.Lock()
		defer mu.Unlock()
		if !returned {
			answer, answered = a, true
			return
		}
		s.world.post(s.id, answerEvent{l.dir, serial, a})
	})
	mu.Lock()
	returned = true
	mu.Unlock()
	if answered {
		return answer, true
	}
	l.asked.kind = q.Kind
	l.park(f)
	return Answer{}, false
}

// job runs work off the driver's thread, on the frame as it is parked. The result is
// what work calls done with, once; the frame's handler is then run again.
func (s *Session) job(l *lane, f held, work func(f held, done func(any))) {
	l.asked.serial++
	serial := l.asked.serial
	f = l.park(f)
	s.world.work(func() {
		work(f, func(result any) { s.world.post(s.id, doneEvent{l.dir, serial, result}) })
	})
}
