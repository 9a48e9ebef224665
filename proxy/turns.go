package proxy

import (
	"slices"
	"sync"
)

// maxMarked is how many marked opens to one module are with the router at once.
// The router takes sixteen binds a module and refuses the next open, whoever
// sends it: a few openers whose opens are all refused would crowd out a good
// one. Below that bound, openers of scopes take turns; it is above the eight
// opens that one connection may have under way.
const maxMarked = 12

// turns gives openers their turn, in the order they came. Whoever waits holds up
// its own connection's control frames and nobody else, with one open at most, so
// that a connection with many opens gets no more turns than one with few.
type turns struct {
	mu    sync.Mutex
	lines map[string]*line // by target module id
}

type line struct {
	taken   int
	waiting []*turn
}

// turn is one opener's place: first in its module's line, then with the router.
type turn struct {
	module string
	conn   ConnID
	serial uint64 // of the question that its lane is parked on

	// Guarded by turns.mu.
	held  bool
	aged  bool // it has waited through one look at the lines
	ended bool
}

// take takes a turn, or a place in the line for one.
func (t *turns) take(module string, conn ConnID, serial uint64) (place *turn, now bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lines == nil {
		t.lines = make(map[string]*line)
	}
	l := t.lines[module]
	if l == nil {
		l = &line{}
		t.lines[module] = l
	}
	place = &turn{module: module, conn: conn, serial: serial}
	if l.taken < maxMarked && len(l.waiting) == 0 {
		l.taken++
		place.held = true
		return place, true
	}
	l.waiting = append(l.waiting, place)
	return place, false
}

// give ends a turn or a wait, once, and returns whose turn it is now.
func (t *turns) give(place *turn) []*turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if place.ended {
		return nil
	}
	place.ended = true
	l := t.lines[place.module]
	if place.held {
		l.taken--
	} else {
		l.waiting = slices.DeleteFunc(l.waiting, func(w *turn) bool { return w == place })
	}
	var next []*turn
	for l.taken < maxMarked && len(l.waiting) > 0 {
		next = append(next, l.call())
	}
	if l.taken == 0 && len(l.waiting) == 0 {
		delete(t.lines, place.module)
	}
	return next
}

func (l *line) call() *turn {
	first := l.waiting[0]
	l.waiting = l.waiting[1:]
	first.held = true
	l.taken++
	return first
}

// overdue lets everybody go who has waited since the look before this one: a
// module that answers no bind delays no opener for longer, and the router
// decides.
func (t *turns) overdue() []*turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	var late []*turn
	for _, l := range t.lines {
		for len(l.waiting) > 0 && l.waiting[0].aged {
			late = append(late, l.call())
		}
		for _, w := range l.waiting {
			w.aged = true
		}
	}
	return late
}

// askTurn is the question that a lane is parked on while it waits for its turn.
const askTurn QuestionKind = 255

// turnFor takes this session's turn for a marked open to module. Without one it
// parks the lane and returns false: the caller is run again when it has one.
func (s *Session) turnFor(l *lane, f held, module string) bool {
	if s.turn != nil {
		if _, called := l.asked.answers[askTurn]; called {
			return true
		}
		s.forfeit() // it was another frame's
	}
	l.asked.serial++
	place, now := s.world.turns.take(module, s.id, l.asked.serial)
	s.turn = place
	if !now {
		l.asked.kind = askTurn
		l.park(f)
	}
	return now
}

// forfeit gives up a turn that no open has. A frame that waits for it is handled
// again, and takes another when it still needs one.
func (s *Session) forfeit() {
	if s.turn == nil {
		return
	}
	s.world.callTurns(s.world.turns.give(s.turn))
	s.turn = nil
	if l := &s.lanes[toRouter]; l.parked && l.asked.kind == askTurn {
		s.world.post(s.id, answerEvent{toRouter, l.asked.serial, Answer{}})
	}
}

// callTurns tells openers that it is their turn.
func (w *World) callTurns(next []*turn) {
	for _, t := range next {
		w.post(t.conn, answerEvent{toRouter, t.serial, Answer{}})
	}
}
