package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
)

// soakRoutes is how many routes one opener holds at most.
const soakRoutes = 6

// lost counts routes that nothing of ours ended and on which no call is
// answered. The router has a race of its own: about one bind in 13,000 that is
// acked at once draws a Goodbye to the module on a route that it keeps (measured
// without a sidecar too). Where the route is scoped we close it.
const lost = "lost to the router's race"

// soaker is one opener of the soak: it opens, calls, says Goodbye and comes back
// on a new connection, and compares every answer with the chronicle.
type soaker struct {
	soak   *soak
	as     string
	r      *rand.Rand
	link   *link
	routes map[route]*opened

	gate   sync.Mutex // held for one step; a checkpoint takes all of them
	counts map[string]int
}

// opened is a route that was admitted.
type opened struct {
	attempt
	calm   int64 // how calm the providers were when its open was sent
	looked int   // pictures up to here were looked at
	latest int   // the last picture that may have admitted it
	broken bool  // a picture that it may have lived under ends it
	ended  int   // the first picture behind latest that does, 0: none
}

// wrong is an answer that the model does not allow.
type wrong struct{ what string }

func (w *wrong) Error() string { return w.what }

func wrongf(format string, args ...any) error { return &wrong{fmt.Sprintf(format, args...)} }

// step does one thing.
func (s *soaker) step() error {
	s.gate.Lock()
	defer s.gate.Unlock()
	if err := s.hear(); err != nil {
		return err
	}
	switch n := s.r.IntN(100); {
	case n < 1 && s.r.IntN(3) == 0:
		return s.again()
	case n < 20 && len(s.routes) > 0:
		s.leave()
		return nil
	case n < 55 && len(s.routes) > 0:
		return s.call()
	case n < 62:
		return s.plain()
	case len(s.routes) < soakRoutes:
		return s.open()
	}
	return s.call()
}

// again comes back on a new connection.
func (s *soaker) again() error {
	s.link.close()
	s.link.record.Reset()
	clear(s.routes)
	s.counts["connections"]++
	return s.connect()
}

func (s *soaker) connect() error {
	conn := s.soak.dial(s.as)
	if conn == nil {
		return wrongf("no connection")
	}
	s.link = &link{
		t: s.soak.t, conn: conn, waiting: map[uint64]chan wire.Frame{},
		inbox: make(chan wire.Frame, 1<<10), ended: make(chan struct{}),
	}
	go s.link.read(nil)
	return nil
}

// pick is an attempt: mostly one that was right lately.
func (s *soaker) pick() attempt {
	p := s.soak.told.last()
	a := attempt{ref: s.r.IntN(soakRefs), as: s.as, target: idEcho}
	if s.r.IntN(3) == 0 {
		a.target = idOld
	}
	a.epoch = p[a.ref].epoch
	switch s.r.IntN(10) {
	case 0:
		a.epoch++
	case 1:
		a.epoch = 0
	case 2:
		a.epoch -= min(a.epoch, 1)
	}
	if p[a.ref].proof || s.r.IntN(8) == 0 {
		a.proof = []string{goodProof, goodProof, goodProof, badProof, ""}[s.r.IntN(5)]
	}
	return a
}

func (s *soaker) open() error {
	a := s.pick()
	scope := object{"owner": reserved(idOwner), "ref": refName(a.ref)}
	if a.epoch != 0 {
		scope["scope_epoch"] = a.epoch
	}
	if a.proof != "" {
		scope["bind_proof"] = a.proof
	}
	body := s.opening(a.target)
	body["scope"] = scope
	from, calm := s.soak.told.began(), s.soak.calm.Load()
	f, ok := s.link.answer(s.link.ask(wire.Header{}, wire.MustMarshal(body)))
	seen := s.soak.told.since(from)
	if !ok {
		return wrongf("no answer to an open: %v", s.link.why)
	}
	code := ""
	if f.Type == wire.Error {
		var body refusal
		json.Unmarshal(f.Body, &body)
		code = body.Code
	}
	if code != "" && !strings.HasPrefix(code, "scope_") && s.soak.stirred(calm) {
		s.counts["while a provider restarts"]++
		return nil
	}
	if !fits(seen, a, code) {
		var scopes []sole
		for i := range seen {
			scopes = append(scopes, seen[i][a.ref])
		}
		return wrongf("%+v was answered %q; the scope was %+v", a, code, scopes)
	}
	if len(seen) > 1 {
		s.counts["opens during a change"]++
	}
	if code != "" {
		s.counts[code]++
		return nil
	}
	s.counts["admitted"]++
	var r route
	if err := json.Unmarshal(f.Body, &r); err != nil {
		return err
	}
	first, latest := -1, 0
	for i := range seen {
		if seen[i].outcome(a) == "" {
			latest = from + i
			if first < 0 {
				first = latest
			}
		}
	}
	s.routes[r] = &opened{attempt: a, calm: calm, looked: first, latest: latest}
	return nil
}

// opening is an open by this soaker.
func (s *soaker) opening(target string) object {
	body := s.soak.opening(target)
	if s.as != "direct" {
		as(body, s.as, s.soak.cast[idCarrier].launch.Nonce)
	}
	return body
}

// hear takes what came unasked: the end of routes, each of which must have a
// reason in the chronicle.
func (s *soaker) hear() error {
	for {
		select {
		case f := <-s.link.inbox:
			if f.Type != wire.Goodbye {
				continue
			}
			r := route{f.Channel, f.Epoch}
			o, ok := s.routes[r]
			if !ok {
				continue
			}
			delete(s.routes, r)
			if s.broken(o) {
				s.counts["drained"]++
			} else if s.soak.stirred(o.calm) {
				s.counts["ended with a provider"]++
			} else {
				s.counts[lost]++
			}
		default:
			return nil
		}
	}
}

// broken reports whether some picture since its open ends the route.
func (s *soaker) broken(o *opened) bool {
	for _, p := range s.soak.told.since(o.looked) {
		if !p.holds(o.attempt) {
			o.broken = true
			if o.looked > o.latest && o.ended == 0 {
				o.ended = o.looked
			}
		}
		o.looked++
	}
	return o.broken
}

// call makes one call on a route. It is answered when nothing ended the route.
func (s *soaker) call() error {
	r, o, ok := s.any()
	if !ok {
		return nil
	}
	dead := s.soak.told.began()
	f := s.ask(r)
	select {
	case <-s.link.ended:
		return wrongf("the connection ended: %v", s.link.why)
	case got := <-f:
		if got.Type != wire.Response {
			if s.broken(o) || s.soak.stirred(o.calm) {
				return nil
			}
			return wrongf("a call on %+v was answered %s", *o, got.Body)
		}
		if s.broken(o) && o.ended != 0 && o.ended <= dead {
			return wrongf("a call was answered on %+v, which had ended before it was made", *o)
		}
		s.counts["calls"]++
	case <-s.soak.later():
		if s.broken(o) || s.soak.stirred(o.calm) {
			s.counts["calls on a route that ended"]++
		} else {
			s.counts[lost]++
		}
	}
	return nil
}

func (s *soaker) ask(r route) <-chan wire.Frame {
	h := wire.Header{Flags: wire.FlagInteractive, Channel: r.Channel, Epoch: r.Epoch}
	return s.link.ask(h, wire.MustMarshal(object{"n": s.r.Uint32()}))
}

// any is one of the routes.
func (s *soaker) any() (route, *opened, bool) {
	for r, o := range s.routes {
		return r, o, true
	}
	return route{}, nil, false
}

// leave says Goodbye on a route.
func (s *soaker) leave() {
	r, _, _ := s.any()
	s.link.send(wire.Header{Type: wire.Goodbye, Channel: r.Channel, Epoch: r.Epoch}, nil)
	delete(s.routes, r)
	s.counts["goodbyes"]++
}

// plain opens a route without a scope, calls on it and leaves.
func (s *soaker) plain() error {
	calm := s.soak.calm.Load()
	f, ok := s.link.answer(s.link.ask(wire.Header{}, wire.MustMarshal(s.opening(idEcho))))
	var r route
	switch {
	case !ok:
		return wrongf("no answer to a plain open: %v", s.link.why)
	case f.Type != wire.Response && s.soak.stirred(calm):
		return nil
	case f.Type != wire.Response || json.Unmarshal(f.Body, &r) != nil:
		return wrongf("a plain open was answered %s", f.Body)
	}
	select {
	case got := <-s.ask(r):
		if got.Type != wire.Response && !s.soak.stirred(calm) {
			return wrongf("a plain call was answered %s", got.Body)
		}
	case <-s.link.ended:
		return wrongf("the connection ended: %v", s.link.why)
	case <-s.soak.later():
		if !s.soak.stirred(calm) {
			s.counts[lost]++
		}
	}
	s.link.send(wire.Header{Type: wire.Goodbye, Channel: r.Channel, Epoch: r.Epoch}, nil)
	s.counts["plain"]++
	return nil
}
