package proxy

import (
	"slices"

	"scopeward/proxy/wire"
)

// longBody is the length in bytes from which a control frame's body is taken apart
// off the driver's thread: for one of 64 MiB that takes a good part of a second, in
// which nobody else would be served.
const longBody = 256 << 10

// split is a long body, taken apart.
type split struct {
	object wire.Object
	err    error
}

// object takes the body of the frame being handled apart. For a long one it parks
// the lane and is not ready, as [Session.ask] is: the frame's handler is run again.
// What it returns is the caller's to change.
func (s *Session) object(l *lane, f held) (o wire.Object, ready bool, err error) {
	if len(f.frame) < longBody {
		o, err = wire.ParseObject(f.body())
		return o, true, err
	}
	if read := l.asked.read; read != nil {
		return wire.Object{Members: slices.Clone(read.object.Members)}, true, read.err
	}
	s.job(l, f, func(f held, done func(any)) {
		o, err := wire.ParseObject(f.body())
		done(&split{o, err})
	})
	return wire.Object{}, false, nil
}
