package proxy

// outbox is what a session has written one way and its driver has not yet taken
// away. Relayed bytes alias the driver's read buffer, so the driver empties it
// before it reads again.
//
// A frame of ours may be written only between two relayed frames. What is
// injected in the middle of one waits in later.
type outbox struct {
	segs   [][]byte
	ours   bool // the last segment is frames of ours
	later  []byte
	urgent bool // a Goodbye of ours is among what was written since the driver last looked
	stuck  bool // a Goodbye of ours is in later
}

// relay appends bytes as they came.
func (o *outbox) relay(b []byte) { o.segs, o.ours = append(o.segs, b), false }

// waiting reports whether frames of ours wait for a boundary.
func (o *outbox) waiting() bool { return len(o.later) > 0 }

// release writes what waited for a boundary.
func (o *outbox) release() {
	if len(o.later) == 0 {
		return
	}
	o.push(o.later)
	o.urgent = o.urgent || o.stuck
	o.later, o.stuck = nil, false
}

// inject writes whole frames of ours, now when the lane that feeds this outbox
// is between frames, else when it is again. The outbox keeps b.
func (o *outbox) inject(b []byte, boundary, goodbye bool) {
	if boundary && len(o.later) == 0 {
		o.push(b)
		o.urgent = o.urgent || goodbye
		return
	}
	o.later = append(o.later, b...)
	o.stuck = o.stuck || goodbye
}

// maxTogether is how many bytes of ours are put together, so that many small
// frames are one write.
const maxTogether = 64 << 10

// push appends frames of ours. What stands behind b in its memory may be
// somebody else's: it is copied when more follows it.
func (o *outbox) push(b []byte) {
	if last := len(o.segs) - 1; last >= 0 && o.ours && len(o.segs[last])+len(b) <= maxTogether {
		o.segs[last] = append(o.segs[last], b...)
		return
	}
	o.segs, o.ours = append(o.segs, b[:len(b):len(b)]), true
}

// take hands over what was written, and whether a Goodbye of ours is in it. The
// list is good until the session is called again.
func (o *outbox) take() (segs [][]byte, goodbye bool) {
	segs, goodbye = o.segs, o.urgent
	o.segs, o.urgent = o.segs[:0], false
	return segs, goodbye
}
