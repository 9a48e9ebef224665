package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/go-json-experiment/json"

	"scopeward/proxy"
	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/wire"
	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

const (
	// probeTimeout bounds one probe: our handshake, then a router that must have
	// its own time to let our session in.
	probeTimeout = 3 * handshake.Timeout
	// probeServes is how long one probe's outcome serves whoever asks.
	probeServes = time.Second
)

// ProberParams are what a prober is made of. All are required.
type ProberParams struct {
	Addr  string // where the sidecar accepts, host:port
	File  string // where it publishes itself
	World func() *proxy.World
	State func() State
}

// Prober tries the sidecar the way its clients use it. Its probes are shared:
// whoever asks within a second of one gets its outcome.
type Prober struct {
	p    ProberParams
	turn chan struct{} // one token guards last
	last api.Health
	at   time.Time // of last; zero: there was none
}

// NewProber makes a prober.
func NewProber(p ProberParams) *Prober {
	b := &Prober{p: p, turn: make(chan struct{}, 1)}
	b.turn <- struct{}{}
	return b
}

// Probe connects to the sidecar by the file that it published, authenticates, asks
// the router through it to describe itself, reads the table, and looks at
// attribution. A router that is absent is a state: then it is enough that the
// sidecar takes a connection and says goodbye to it. When ctx ends first, nothing
// was shown: the outcome is neither live nor ready.
func (b *Prober) Probe(ctx context.Context) api.Health {
	select {
	case <-b.turn:
	case <-ctx.Done():
		return api.Health{AtMS: time.Now().UnixMilli()}
	}
	defer func() { b.turn <- struct{}{} }()
	if time.Since(b.at) < probeServes && !b.at.IsZero() {
		return b.last
	}
	start := time.Now()
	try, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	h := b.probe(try)
	if ctx.Err() != nil {
		return api.Health{AtMS: time.Now().UnixMilli()}
	}
	b.at = time.Now()
	h.AtMS, h.ElapsedUS = b.at.UnixMilli(), time.Since(start).Microseconds()
	b.last = h
	return h
}

func (b *Prober) probe(ctx context.Context) api.Health {
	state := b.p.State()
	var p progress
	if state.Router.Attached {
		b.throughRouter(ctx, &p)
	} else {
		p.step(stepAccept, b.farewell(ctx))
		for _, name := range []string{stepHandshake, stepDescribe, stepTable} {
			p.absent(name, "there is no router: "+state.Router.Why)
		}
	}
	attributed := b.attributes(state, &p)
	return api.Health{
		Live:  p.sound(stepAccept, stepHandshake, stepTable),
		Ready: state.Router.Attached && state.Published && attributed && p.sound(stepAccept, stepHandshake, stepTable, stepDescribe),
		Steps: p.steps,
	}
}

// throughRouter is the probe while the router is there.
func (b *Prober) throughRouter(ctx context.Context, p *progress) {
	f, err := connfile.Read(b.p.File)
	if err != nil {
		p.step(stepAccept, err)
		return
	}
	conn, err := connfile.Dial(ctx, f, handshake.RoleWatchdog)
	switch {
	case errors.Is(err, connfile.ErrNoEndpoint):
		p.step(stepAccept, err)
		return
	case err != nil:
		p.step(stepAccept, nil)
		p.step(stepHandshake, err)
		return
	}
	defer conn.Close()
	p.step(stepAccept, nil)
	p.step(stepHandshake, nil)
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	own, router := exchange(conn)
	if errors.Is(own, errRouterWent) {
		own = nil
	}
	if own == nil {
		own = b.readTable(ctx)
	}
	p.step(stepTable, own)
	p.step(stepDescribe, router)
}

var (
	errRouterWent = errors.New("the router did not take the probe's connection")
	errNoAnswer   = errors.New("no answer in time")
)

// The corrs of the probe's two requests.
const (
	corrOwn      = 1
	corrDescribe = 2
)

// exchange sends a request that the sidecar answers by itself, and one that the
// router answers through it. It says what is wrong with each answer.
//
// The first is an open that claims a mark of ours: it is refused on the spot and
// leaves no record.
func exchange(conn net.Conn) (own, router error) {
	open := []byte(`{"op":"` + wire.OpRouteOpen + `","consumer_capabilities":["` + wire.MarkPrefix + `"]}`)
	frames := wire.AppendFrame(nil, wire.Header{Type: wire.Request, Corr: corrOwn}, open)
	frames = wire.AppendFrame(frames, wire.Header{Type: wire.Request, Corr: corrDescribe}, []byte(`{"op":"`+wire.OpServerDescribe+`"}`))
	own, router = errNoAnswer, errNoAnswer
	if _, err := conn.Write(frames); err != nil {
		return errRouterWent, errRouterWent
	}
	for range 2 {
		f, err := wire.ReadFrame(conn)
		if err != nil {
			if isTimeout(err) {
				return own, router
			}
			return orWent(own), orWent(router)
		}
		switch f.Corr {
		case corrOwn:
			own = nil
		case corrDescribe:
			router = described(f)
		}
	}
	return own, router
}

func orWent(err error) error {
	if err != nil {
		return errRouterWent
	}
	return nil
}

func described(f wire.Frame) error {
	if f.Type == wire.Response {
		return nil
	}
	var body wire.ErrorBody
	if json.Unmarshal(f.Body, &body) != nil || body.Code == "" {
		return errors.New("the router answers with something else")
	}
	return fmt.Errorf("the router answers %s", Quote(body.Code))
}

// readTable reads the table, which takes its lock.
func (b *Prober) readTable(ctx context.Context) error {
	w := b.p.World()
	if w == nil {
		return nil // the router has just gone
	}
	read := make(chan table.Totals, 1)
	go func() { read <- w.Table.Totals() }()
	select {
	case <-read:
		return nil
	case <-ctx.Done():
		return errors.New("the table's lock is held")
	}
}

// farewell connects while there is no router: the sidecar accepts and closes.
func (b *Prober) farewell(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.p.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	// A router that comes meanwhile makes the sidecar wait for a handshake.
	if half, ok := conn.(*net.TCPConn); ok {
		half.CloseWrite()
	}
	if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
		return errNoAnswer
	}
	return nil
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// attributes looks at what attribution last found of itself. It says whether the
// sidecar can do what it is told to with it.
func (b *Prober) attributes(state State, p *progress) bool {
	a := state.Attribution
	switch {
	case a.Source == sourceNone:
		p.absent(stepAttribute, "connections are not attributed: mode is "+a.Mode)
		return true
	case a.Fault != "":
		p.step(stepAttribute, errors.New(a.Fault))
		return a.Mode != modeEnforce
	}
	return p.step(stepAttribute, nil)
}

// The words of [api.Attribution] that are looked at here.
const (
	sourceNone  = "none"
	modeEnforce = "enforce"
)
