package main

import (
	"fmt"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
)

// peer is one authenticated connection that asks and waits for its answer. It
// belongs to one thread at a time.
type peer struct {
	*socket
	in   buffer
	out  []byte
	corr uint64 // the last one used
}

// route is an open route in the opener's space.
type route struct {
	Channel uint16 `json:"route_channel"`
	Epoch   uint32 `json:"route_epoch"`
}

// dial connects to the daemon that f names and authenticates.
func dial(f connfile.File) (*peer, error) {
	s, err := dialTCP(int(f.Endpoints[0].Port))
	if err != nil {
		return nil, err
	}
	if _, err := handshake.Client(s, f.Key, f.DaemonID, handshake.RoleClient); err != nil {
		s.Close()
		return nil, err
	}
	return &peer{socket: s}, nil
}

// fill reads once.
func (p *peer) fill() error {
	n, err := p.Read(p.in.room())
	p.in.w += n
	return err
}

// send writes one frame under a new corr.
func (p *peer) send(h wire.Header, body []byte) error {
	p.corr++
	h.Corr = p.corr
	p.out = wire.AppendFrame(p.out[:0], h, body)
	_, err := p.Write(p.out)
	return err
}

// await reads up to the answer of the last corr. What the router sends unasked
// is dropped. The body it returns is valid until the next read.
func (p *peer) await() (wire.Header, []byte, error) {
	for {
		h, raw, ok, err := p.in.next()
		if err != nil {
			return h, nil, err
		}
		if !ok {
			if err := p.fill(); err != nil {
				return h, nil, err
			}
			continue
		}
		if h.Corr != p.corr || !answers(h.Type) {
			continue
		}
		body := raw[wire.HeaderLen:]
		if h.Type == wire.Error {
			return h, body, refusal(body)
		}
		return h, body, nil
	}
}

func answers(t wire.Type) bool {
	return t == wire.Response || t == wire.Error || t == wire.HelloAck
}

// ask sends a control request and returns the body of its answer.
func (p *peer) ask(body []byte) ([]byte, error) {
	if err := p.send(wire.Header{Type: wire.Request, Flags: wire.FlagInteractive}, body); err != nil {
		return nil, err
	}
	_, answer, err := p.await()
	return answer, err
}

// open opens one route.
func (p *peer) open(body []byte) (route, error) {
	answer, err := p.ask(body)
	if err != nil {
		return route{}, err
	}
	return parseRoute(answer)
}

// leave closes a route. Nothing answers it.
func (p *peer) leave(r route) error {
	p.out = wire.AppendGoodbye(p.out[:0], r.Channel, r.Epoch)
	_, err := p.Write(p.out)
	return err
}

func parseRoute(answer []byte) (route, error) {
	var r route
	if err := json.Unmarshal(answer, &r); err != nil || r.Channel == 0 {
		return r, fmt.Errorf("the answer of an open names no route")
	}
	return r, nil
}
