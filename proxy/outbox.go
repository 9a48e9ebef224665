package proxy

// outbox is what a session has written one way and its driver has not yet taken
// away. Relayed bytes alias the driver's read buffer, so the driver empties it
// before it reads again.
//
// A frame of ours may be written only between two relayed frames. What is
// injected in the middle of one waits in later.
type outbox struct {
	segs   [][]byte
	later  []byte
	urgent bool // a Goodbye of ours is among what was written since the driver last looked
	stuck  bool // a Goodbye of ours is in later
}

// relay appends bytes as they came.
func (o *outbox) relay(b []byte) { o.segs = append(o.segs, b) }

// waiting reports whether frames of ours wait for a boundary.
func (o *outbox) waiting() bool { return len(o.later) > 0 }

// release writes what waited for a boundary.
func (o *outbox) release() {
	if len(o.later) == 0 {
		return
	}
	o.segs = append(o.segs, o.later)
	o.urgent = o.urgent || o.stuck
	o.later, o.stuck = nil, false
}

// inject writes whole frames of ours, now when the lane that feeds this outbox
// is between frames, else when it is again. The outbox keeps b.
func (o *outbox) inject(b []byte, boundary, goodbye bool) {
	if boundary && len(o.later) == 0 {
		o.segs = append(o.segs, b)
		o.urgent = o.urgent || goodbye
		return
	}
	o.later = append(o.later, b...)
	o.stuck = o.stuck || goodbye
}

// take hands over what was written, and whether a Goodbye of ours is in it. The
// list is good until the session is called again.
func (o *outbox) take() (segs [][]byte, goodbye bool) {
	segs, goodbye = o.segs, o.urgent
	o.segs, o.urgent = o.segs[:0], false
	return segs, goodbye
}
