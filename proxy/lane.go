package proxy

import (
	"unsafe"

	"scopeward/proxy/wire"
)

// direction names the way frames travel through a session.
type direction uint8

const (
	toRouter direction = iota // from the peer
	toPeer                    // from the router
)

func (d direction) other() direction { return 1 - d }

// fate is what becomes of a frame whose header has been read.
type fate uint8

const (
	pass fate = iota // relay it as it stands
	drop             // forget it
	hold             // keep it whole, then hand it to its handler
)

// lane scans one direction's bytes into frames. It relays runs of whole and
// partial frames without copying them, collects the frames that must be read,
// and skips those that must go. It decides nothing: its session's judge says
// each frame's fate.
type lane struct {
	dir direction

	head    [wire.HeaderLen]byte // a header that came in pieces
	headLen int

	left int  // body bytes of the current frame still to come
	fate fate // of the current frame
	kept []byte

	parked  bool   // the front of queue waits for an answer
	short   bool   // or for units
	asked   asked  // what that frame has been told
	queue   []held // the parked frame and those behind it, in order
	waiting int    // bytes in queue
	behind  map[uint16]bool
	all     bool // everything waits: the registration may end in the queue
}

// held is one whole frame kept in memory.
type held struct {
	wire.Header
	frame []byte // header and body
	paid  bool   // it needs no more units
	own   bool   // frame is nobody else's: it may be kept as it is
}

func (f *held) body() []byte { return f.frame[wire.HeaderLen:] }

// room is how much memory a frame takes in a queue.
func (f *held) room() int { return len(f.frame) + int(unsafe.Sizeof(*f)) }

// stay makes f one that may be kept.
func (f *held) stay() {
	if !f.own {
		f.frame, f.own = append([]byte(nil), f.frame...), true
	}
}

// boundary reports whether the lane's output stands between two frames, so that
// a frame of ours may be written there.
func (l *lane) boundary() bool { return l.left == 0 || l.fate != pass }

// maxParked is how much may wait behind a parked frame before its connection is
// no longer read.
const maxParked = 1 << 20

// full reports whether the lane takes no more until what is parked resumes.
func (l *lane) full() bool { return l.parked && l.waiting > maxParked }

// feed scans b. Slices handed to out alias b.
func (s *Session) feed(l *lane, b []byte) {
	out := s.out(l.dir)
	run := 0 // start of the bytes of b that are relayed as they stand
	i := 0
	flush := func(to int) {
		if to > run {
			out.relay(b[run:to])
		}
	}
	for i < len(b) && !s.ended {
		if l.left > 0 {
			n := min(l.left, len(b)-i)
			switch l.fate {
			case hold:
				l.collect(b[i : i+n])
			case pass:
			}
			i += n
			l.left -= n
			if l.fate != pass {
				run = i
			}
			if l.left == 0 {
				if l.fate == pass {
					if out.waiting() {
						flush(i)
						run = i
						out.release()
					}
				} else if l.fate == hold {
					kept := l.kept
					l.kept = nil
					s.whole(l, kept, true)
				}
			}
			continue
		}
		var h wire.Header
		start := i
		if l.headLen == 0 && len(b)-i >= wire.HeaderLen {
			var err error
			if h, err = wire.ParseHeader(b[i:]); err != nil {
				flush(i)
				s.malformed(l, err)
				return
			}
			i += wire.HeaderLen
		} else {
			flush(i)
			n := copy(l.head[l.headLen:], b[i:])
			l.headLen += n
			i += n
			run = i
			var err error
			if h, err = wire.ParseHeader(l.head[:l.headLen]); err == wire.ErrShort {
				continue
			} else if err != nil {
				s.malformed(l, err)
				return
			}
			start = -1
		}
		fate := s.judge(l, h)
		l.fate, l.left = fate, int(h.Len)
		switch fate {
		case pass:
			if start < 0 {
				out.relay(append([]byte(nil), l.head[:]...))
			}
			if l.left == 0 && out.waiting() {
				flush(i)
				run = i
				out.release()
			}
		case drop:
			if start >= 0 {
				flush(start)
			}
			run = i
		case hold:
			if start >= 0 {
				flush(start)
				if end := start + wire.HeaderLen + l.left; end <= len(b) {
					i, run, l.left = end, end, 0
					l.headLen = 0
					s.whole(l, b[start:end:end], false)
					continue
				}
			}
			l.kept = h.Append(make([]byte, 0, wire.HeaderLen+min(l.left, 64<<10)))
			run = i
			if l.left == 0 {
				kept := l.kept
				l.kept = nil
				l.headLen = 0
				s.whole(l, kept, true)
				continue
			}
		}
		l.headLen = 0
	}
	if !s.ended {
		flush(i)
	}
}

// collect appends to the frame that is kept. Its memory is what has come of it four
// times over at most: what a header promises need never come.
func (l *lane) collect(b []byte) {
	if need := len(l.kept) + len(b); need > cap(l.kept) {
		grown := make([]byte, len(l.kept), min(len(l.kept)+l.left, max(need, 4*cap(l.kept))))
		copy(grown, l.kept)
		l.kept = grown
	}
	l.kept = append(l.kept, b...)
}

// whole takes one complete frame of fate hold. It aliases the read buffer, or is in
// memory of its own.
func (s *Session) whole(l *lane, frame []byte, own bool) {
	h, err := wire.ParseHeader(frame)
	if err != nil {
		s.malformed(l, err)
		return
	}
	f := held{Header: h, frame: frame, own: own}
	if l.parked {
		l.keep(s, f)
		return
	}
	if f.paid = s.pay(l, h); !f.paid {
		l.parked, l.short = true, true
		l.keep(s, f)
		return
	}
	s.handle(l, f)
}

// keep queues a frame behind the parked one. Frames of its route wait with it.
func (l *lane) keep(s *Session, f held) {
	f.stay()
	l.queue = append(l.queue, f)
	l.waiting += f.room()
	if f.Channel != wire.ControlChannel {
		l.wait(f.Channel)
		return
	}
	switch f.Type {
	case wire.Goodbye:
		l.all = true
	case wire.Response, wire.Error:
		if l.dir != toRouter || s.role != registered {
			break
		}
		if b := s.binds[f.Corr]; b != nil {
			l.wait(b.leg.channel)
		} else {
			l.all = true // of an unscoped bind, whose channel we don't know
		}
	}
}

func (l *lane) wait(channel uint16) {
	if l.behind == nil {
		l.behind = make(map[uint16]bool)
	}
	l.behind[channel] = true
}

// waits reports whether a frame must queue behind the parked one: control
// frames and Goodbyes keep their order, data waits only for its own route.
func (l *lane) waits(h wire.Header) bool {
	return l.parked && (h.Channel == wire.ControlChannel || h.Type == wire.Goodbye || l.all || l.behind[h.Channel])
}

// park makes f wait for an answer, and the lane's control frames behind it. It
// returns f as it is kept, which nobody changes.
func (l *lane) park(f held) held {
	if l.parked {
		return l.queue[0]
	}
	l.parked = true
	f.stay()
	l.queue = append([]held{f}, l.queue...)
	l.waiting += f.room()
	return f
}

// resume handles the parked frame again, and then what waited behind it, in
// order, until one parks.
func (s *Session) resume(l *lane) {
	l.parked, l.short = false, false
	for len(l.queue) > 0 && !s.ended {
		f := l.queue[0]
		if !f.paid && !s.pay(l, f.Header) {
			l.parked, l.short = true, true
			return
		}
		f.paid = true
		l.queue = l.queue[1:]
		l.waiting -= f.room()
		s.handle(l, f)
		if l.parked {
			return
		}
		l.asked = asked{serial: l.asked.serial}
	}
	l.queue, l.behind, l.all, l.waiting = nil, nil, false, 0
}
