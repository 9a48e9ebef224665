package proxy

import "scopeward/table"

// Event is something that reaches a session from outside its two connections.
// It is posted to the session's driver and never blocks the poster.
type Event interface{ event() }

// answerEvent answers the question that parked a lane.
type answerEvent struct {
	dir    direction
	serial uint64
	answer Answer
}

// doneEvent is the result of the job that parked a lane.
type doneEvent struct {
	dir    direction
	serial uint64
	result any
}

// drainEvent closes live routes of this opener.
type drainEvent struct{ drains []table.Drain }

// cutEvent ends the session at once.
type cutEvent struct{ reason string }

// evictEvent closes live routes by hand. Their authority is not revoked:
// openers may come back.
type evictEvent struct {
	conn   ConnID // 0: any
	match  func(table.ScopeID) bool
	closed func(int) // told how many, on the driver's thread; it must not block
}

// feedEvent says that the change feed has new events.
type feedEvent struct{}

func (feedEvent) event()   {}
func (answerEvent) event() {}
func (evictEvent) event()  {}
func (doneEvent) event()   {}
func (drainEvent) event()  {}
func (cutEvent) event()    {}

// Handle takes one event.
func (s *Session) Handle(e Event) {
	if s.ended {
		return
	}
	switch e := e.(type) {
	case answerEvent:
		l := &s.lanes[e.dir]
		if !l.parked || l.asked.serial != e.serial {
			return
		}
		if l.asked.answers == nil {
			l.asked.answers = make(map[QuestionKind]Answer)
		}
		l.asked.answers[l.asked.kind] = e.answer
		s.resume(l)
	case doneEvent:
		l := &s.lanes[e.dir]
		if !l.parked || l.asked.serial != e.serial {
			return
		}
		if read, ok := e.result.(*split); ok {
			l.asked.read = read
		} else {
			l.asked.done = e.result
		}
		s.resume(l)
	case drainEvent:
		s.drain(e.drains)
	case evictEvent:
		n := 0
		if e.conn == 0 || e.conn == s.id {
			n = s.evict(e.match)
		}
		e.closed(n)
	case feedEvent:
		s.changed()
	case infoEvent:
		e.tell(s.info())
	case cutEvent:
		s.End(e.reason) // whoever asked for it knows
	}
}
