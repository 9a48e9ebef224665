package routertest

import (
	"fmt"
	"time"

	"scopeward/proxy/wire"

	"golang.org/x/sys/unix"
)

// swap is one blue/green restart. Until cutover the incumbent is the module and
// the candidate is in no catalog, no feed and no snapshot. It stays open, with
// both nonces good, until the incumbent's process and connection have gone.
type swap struct {
	m              *supervised
	candidate      *Launch       // until cutover or failure
	candidateNonce string        // kept
	reg            *registration // the candidate's, until cutover or its end
	incumbent      *Launch       // until its process has ended
	incumbentNonce string
	old            *conn // the incumbent's connection, until it has closed
	cut            bool
	failed         *wire.ErrorBody
	timer          *time.Timer
	done           func(*wire.ErrorBody) // told once: nil at cutover
}

func (s *swap) knowsNonce(nonce string) bool {
	return nonce == s.candidateNonce || nonce == s.incumbentNonce
}

type admission uint8

const (
	swapNone admission = iota
	swapCandidate
	swapRefused
)

// swapAdmission judges a Hello for id while a swap is open: one candidate may
// enter, and the incumbent's nonce is judged as outside a swap.
func (r *Router) swapAdmission(id, nonce string) admission {
	m := r.roster[id]
	switch {
	case m == nil || m.swap == nil || nonce != "" && nonce == m.swap.incumbentNonce:
		return swapNone
	case nonce == m.swap.candidateNonce && !m.swap.cut && m.swap.reg == nil && m.swap.failed == nil:
		return swapCandidate
	}
	return swapRefused
}

// Swap starts a candidate beside the module id and returns its launch. Cutover
// comes when the candidate has registered and is ready, within
// DefaultReadyTimeout.
func (r *Router) Swap(id string) (Launch, error) { return r.SwapAs(id, 0) }

// SwapAs is Swap with a PID of the caller's choice for the candidate; 0 mints
// one.
func (r *Router) SwapAs(id string, pid uint32) (Launch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.roster[id]
	if m == nil {
		return Launch{}, fmt.Errorf("module %q is not supervised", id)
	}
	if body := r.beginSwap(m, pid, DefaultReadyTimeout, func(*wire.ErrorBody) {}); body != nil {
		return Launch{}, fmt.Errorf("swap %q: %s", id, body.Code)
	}
	return *m.swap.candidate, nil
}

// supervisorSwap holds its connection's later requests until the swap has cut
// over or failed.
func (r *Router) supervisorSwap(c *conn, f wire.Frame) ([][]byte, error) {
	m, s, body, err := r.asked(f, "ready_timeout_ms")
	if err != nil {
		return nil, err
	}
	if body != nil {
		return refuseBody(f, *body), nil
	}
	ready, err := s.milliseconds("ready_timeout_ms", DefaultReadyTimeout)
	if err != nil {
		return nil, err
	}
	settled := false
	done := func(failure *wire.ErrorBody) {
		body, settled = failure, true
		r.change.Broadcast()
	}
	if refused := r.beginSwap(m, 0, ready, done); refused != nil {
		return refuseBody(f, *refused), nil
	}
	for !settled && !r.closed && !c.gone {
		r.change.Wait()
	}
	if body != nil {
		return refuseBody(f, *body), nil
	}
	return answer(f, ackBody{"supervisor.ack", m.cfg.ID, true}), nil
}

func swapRefusal(reason string) *wire.ErrorBody {
	return &wire.ErrorBody{
		Code: "swap_refused", Message: "the module cannot be swapped: " + reason,
		Detail: wire.MustMarshal(map[string]string{"reason": reason}),
	}
}

func (r *Router) beginSwap(m *supervised, pid uint32, ready time.Duration, done func(*wire.ErrorBody)) *wire.ErrorBody {
	reg := r.registry[m.cfg.ID]
	switch {
	case !m.cfg.OverlapSafe:
		return swapRefusal("overlap_exclusive")
	case !m.enabled:
		return refusal("module_disabled", "module_id %q is disabled", m.cfg.ID)
	case m.swap != nil:
		return swapRefusal("already_swapping")
	case reg == nil || m.launch == nil:
		return swapRefusal("not_registered")
	}
	l, err := r.mint(m, pid, true)
	if err != nil {
		return swapFailure("spawn_failed", nil)
	}
	s := &swap{
		m: m, candidate: l, candidateNonce: l.Nonce, incumbent: m.launch, incumbentNonce: m.nonce, old: reg.conn, done: done,
	}
	m.swap = s
	s.timer = r.later(ready, func() { s.ranOut(r) })
	r.announce()
	return nil
}

func (s *swap) ranOut(r *Router) {
	if s.reg == nil {
		s.fail(r, "never_registered", nil)
		return
	}
	s.fail(r, "never_ready", nil)
}

func (r *Router) candidateRegistered(reg *registration) {
	s := r.roster[reg.id].swap
	s.reg = reg
	r.candidateChanged(reg)
}

// candidateChanged cuts over as soon as the candidate is ready.
func (r *Router) candidateChanged(reg *registration) {
	if m := r.roster[reg.id]; m != nil && m.swap != nil && m.swap.reg == reg && reg.ready {
		m.swap.cutover(r)
	}
}

// cutover makes the candidate the module, tells the feed of it, and drains the
// incumbent.
func (s *swap) cutover(r *Router) {
	m, reg := s.m, s.reg
	id := m.cfg.ID
	s.timer.Stop()
	s.cut, s.reg = true, nil
	old := r.endpoints[id]
	r.endpoints[id] = reg.endpoint
	r.registry[id] = reg
	r.generation++
	delete(r.breakers, id)
	l := s.candidate
	s.candidate = nil
	r.current(m, l)
	s.done(nil)
	d := r.drainTimeout(m)
	if old == nil {
		s.stopIncumbent(r, d)
		return
	}
	r.drain(old, "restart", d, func() { s.stopIncumbent(r, d) })
}

func (s *swap) stopIncumbent(r *Router, d time.Duration) {
	if s.incumbent == nil {
		s.closeIfGone()
		return
	}
	r.later(d, func() {
		if l := s.incumbent; l != nil {
			r.signal(*l, unix.SIGKILL, func(e exit) { s.exited(r, l.PID, e) })
		}
	})
}

// exited takes the end of a process of this swap. It is false when the process
// is the module's current one.
func (s *swap) exited(r *Router, pid uint32, e exit) bool {
	switch {
	case s.candidate != nil && s.candidate.PID == pid:
		s.candidate = nil
		s.fail(r, "candidate_exited", &e)
	case s.cut && s.incumbent != nil && s.incumbent.PID == pid:
		l := s.incumbent
		s.incumbent = nil
		e.atMS = time.Now().UnixMilli()
		s.m.last = &e
		r.feed.emit(spawnEvent{
			Kind: "exited", ModuleID: l.ModuleID, Generation: l.Generation, PID: l.PID, ExitCode: e.code, ExitSignal: e.signal,
		})
		s.closeIfGone()
		if s.m.swap == s {
			r.later(releaseTimeout, s.close)
		}
	default:
		return false
	}
	return true
}

// incumbentDied takes the incumbent's end before cutover: a registered candidate
// is promoted as it is, else the swap is given up. It is true when the module
// goes on with the candidate.
func (s *swap) incumbentDied(r *Router) bool {
	if s.cut || s.failed != nil {
		return false
	}
	s.incumbent = nil
	if s.reg == nil {
		s.fail(r, "interrupted", nil)
		return false
	}
	s.cutover(r)
	return true
}

// released is told that a connection's endpoint has gone. It is true when that
// was one of this swap's.
func (s *swap) released(r *Router, c *conn) bool {
	switch {
	case s.reg != nil && s.reg.conn == c:
		s.reg = nil
		if s.failed != nil {
			s.closeFailed()
		}
		return true
	case s.old == c:
		s.old = nil
		if s.cut {
			s.closeIfGone()
			return true
		}
	}
	return false
}

func (s *swap) closeIfGone() {
	if s.incumbent == nil && s.old == nil {
		s.close()
	}
}

func (s *swap) close() {
	if s.m.swap == s {
		s.m.swap = nil
	}
}

func swapFailure(arm string, e *exit) *wire.ErrorBody {
	var code, signal *int32
	if e != nil {
		code, signal = e.code, e.signal
	}
	return &wire.ErrorBody{
		Code: "swap_failed", Message: "the swap failed: " + arm,
		Detail: wire.MustMarshal(struct {
			Arm    string `json:"arm"`
			Code   *int32 `json:"candidate_exit_code"`
			Signal *int32 `json:"candidate_exit_signal"`
		}{arm, code, signal}),
	}
}

// fail gives the candidate up. Its process is killed; a connection that outlives
// it is cut without a frame.
func (s *swap) fail(r *Router, arm string, e *exit) {
	if s.cut || s.failed != nil {
		return
	}
	s.timer.Stop()
	s.failed = swapFailure(arm, e)
	if l := s.candidate; l != nil {
		s.candidate = nil
		r.signal(*l, unix.SIGKILL, func(exit) {})
	}
	if s.reg == nil {
		s.closeFailed()
		return
	}
	c := s.reg.conn
	r.later(releaseTimeout, func() {
		if s.m.swap == s {
			c.cut()
		}
	})
}

func (s *swap) closeFailed() {
	s.close()
	s.done(s.failed)
}
