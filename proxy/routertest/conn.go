package routertest

import (
	"bufio"
	"net"
	"sync"
	"time"

	"scopeward/proxy/wire"
)

const readBuffer = 64 << 10

// conn is one authenticated connection. It is a module's while it has an
// endpoint and a client's otherwise. What follows nc is guarded by the router's
// lock.
type conn struct {
	r   *Router
	id  uint64
	nc  net.Conn
	out *queue

	gone      bool
	endpoint  *endpoint                // of the newest registration, nil for a client
	routes    map[uint16]*route        // a client's, by its channel
	slots     slots                    // a client's channels
	opens     map[*pending]struct{}    // a client's opens in flight
	feeds     map[uint64]*subscription // by corr
	orphanBye map[uint16]time.Time     // when an orphan channel was last told so
}

func newConn(r *Router, id uint64, nc net.Conn) *conn {
	return &conn{
		r: r, id: id, nc: nc, out: newQueue(),
		routes:    map[uint16]*route{},
		slots:     newSlots(),
		opens:     map[*pending]struct{}{},
		feeds:     map[uint64]*subscription{},
		orphanBye: map[uint16]time.Time{},
	}
}

// run serves the connection until it ends.
func (c *conn) run() {
	var writer sync.WaitGroup
	writer.Go(func() {
		c.out.drain(c.nc)
		c.nc.Close()
	})
	c.read()
	c.r.mu.Lock()
	c.r.connectionEnded(c)
	c.r.mu.Unlock()
	c.cut()
	writer.Wait()
}

// cut ends the connection without a word. What is queued is lost.
func (c *conn) cut() {
	c.out.close()
	c.nc.Close()
}

func (c *conn) read() {
	br := bufio.NewReaderSize(c.nc, readBuffer)
	for {
		f, err := wire.ReadFrame(br)
		if err != nil || !f.Legal() {
			return
		}
		for _, reply := range c.handle(f) {
			if !c.out.wait(reply) {
				return
			}
		}
	}
}

// handle acts on one frame and returns the replies to it. It may wait for room
// at the other end of a route, which is how a slow module holds its callers.
func (c *conn) handle(f wire.Frame) [][]byte {
	if f.Channel == wire.ControlChannel {
		c.r.mu.Lock()
		defer c.r.mu.Unlock()
		return c.r.control(c, f)
	}
	c.r.mu.Lock()
	if c.endpoint != nil {
		defer c.r.mu.Unlock()
		return c.r.moduleData(c, f)
	}
	to, frame, replies := c.r.clientData(c, f)
	c.r.mu.Unlock()
	if to != nil {
		to.out.wait(frame)
	}
	return replies
}

// control acts on a frame on channel 0.
func (r *Router) control(c *conn, f wire.Frame) [][]byte {
	switch f.Type {
	case wire.Ping:
		return one(wire.Header{Type: wire.Pong, Corr: f.Corr}.Append(nil))
	case wire.Hello:
		return r.hello(c, f)
	case wire.Goodbye:
		r.controlGoodbye(c)
		return nil
	case wire.Cancel:
		if r.feed.cancel(c, f.Corr) {
			return nil
		}
		return refuse(f, wire.CodeUnknownSubscription, "no spawn subscription has this corr")
	case wire.Request:
		if c.endpoint != nil {
			return r.moduleRequest(c, f)
		}
		return r.clientRequest(c, f)
	case wire.Push:
		if c.endpoint != nil {
			return r.modulePush(c, f)
		}
		return refuse(f, wire.CodeUnsupportedControlFrame, "a client may not push on channel 0")
	case wire.Response, wire.Error:
		if c.endpoint != nil {
			return r.bindAnswer(c, f)
		}
	}
	return refuse(f, wire.CodeUnsupportedControlFrame, "frame type "+f.Type.String()+" has no meaning here")
}

func one(frame []byte) [][]byte { return [][]byte{frame} }

func refuse(f wire.Frame, code, message string) [][]byte {
	return refuseBody(f, wire.ErrorBody{Code: code, Message: message})
}

func refuseBody(f wire.Frame, body wire.ErrorBody) [][]byte {
	return one(wire.AppendError(nil, f.Channel, f.Epoch, f.Corr, body))
}

// answer is the Response to f.
func answer(f wire.Frame, body any) [][]byte {
	return one(wire.AppendFrame(nil, wire.Header{Type: wire.Response, Corr: f.Corr}, wire.MustMarshal(body)))
}

// push is a push on channel 0.
func push(body any) []byte {
	return wire.AppendFrame(nil, wire.Header{Type: wire.Push}, wire.MustMarshal(body))
}
