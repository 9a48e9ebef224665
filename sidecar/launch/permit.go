package launch

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"scopeward/proxy"
	"scopeward/proxy/wire"
	"scopeward/sidecar/config"
	"scopeward/sidecar/router"
)

// Mismatch is an identity that a process other than its launch presented.
type Mismatch struct {
	Conn     proxy.ConnID
	Kind     proxy.QuestionKind // AskHello or AskIdentity
	ModuleID string
	Process  Process // its Start is 0 when it is not known
	Reason   string
	Refused  bool // false in observe: it passed
}

// permitTries is how often a probe that tells nothing is asked again before a
// Hello is refused for it.
const permitTries = 10

// vet answers whether a Hello or a consumer_identity may pass. What is known
// already is answered on the spot; in observe everything passes and is judged
// afterwards.
func (s *span) vet(q proxy.Question, reply func(proxy.Answer)) {
	mode := s.t.now().mode
	p := s.t.Peer(q.Conn)
	switch {
	case mode == config.AttributionOff, s.pinnedTo(q.ModuleID, q.Nonce, p):
		reply(proxy.Answer{})
	case mode == config.AttributionObserve:
		reply(proxy.Answer{})
		s.job(func() { s.permit(q, p) })
	default:
		if !s.job(func() { reply(s.permit(q, p)) }) {
			reply(proxy.Answer{})
		}
	}
}

// permit judges a Hello or a consumer_identity by the process that presents it,
// and reports what does not fit. In observe nothing comes of the answer.
func (s *span) permit(q proxy.Question, p Process) proxy.Answer {
	hello := q.Kind == proxy.AskHello
	if hello && !s.configured(q.ModuleID) {
		return proxy.Answer{}
	}
	reason := "the process at its other end is not known: " + p.Reason
	if p.Start != 0 {
		reason = s.judge(q, p)
	}
	if reason == "" {
		return proxy.Answer{}
	}
	enforce := s.t.now().enforces()
	if s.t.p.Report != nil {
		s.t.p.Report(Mismatch{q.Conn, q.Kind, q.ModuleID, p, reason, enforce})
	}
	if !enforce {
		return proxy.Answer{}
	}
	code := wire.CodeBadConsumerIdentity
	if hello {
		code = wire.CodeReservedModule
	}
	return proxy.Answer{Code: code, Message: fmt.Sprintf("module_id '%s': %s", short(q.ModuleID), reason)}
}

// judge returns why p may not speak as the module, "" when it may.
func (s *span) judge(q proxy.Question, p Process) string {
	hello := q.Kind == proxy.AskHello
	if hello && q.Nonce == "" {
		return fmt.Sprintf("pid %d presents no launch nonce", p.PID)
	}
	root, ok := s.launchOf(q.ModuleID, p)
	if !ok && s.feed {
		// The process may be younger than our news of it.
		if snap, err := s.link().SpawnSnapshot(s.ctx); err == nil {
			s.merge(snap)
			root, ok = s.launchOf(q.ModuleID, p)
		}
	}
	if !ok && !s.mayBeCandidate(q.ModuleID, p) {
		return fmt.Sprintf("pid %d is no process of its launch%s", p.PID, s.pidsOf(q.ModuleID))
	}
	if ok && s.pinnedTo(q.ModuleID, q.Nonce, root) {
		return ""
	}
	switch s.probe(q) {
	case router.Foreign:
		return fmt.Sprintf("the nonce that pid %d presents is not its launch's", p.PID)
	case router.Unknown:
		if ok {
			// The process is the right one, and the router judges what it presents.
			return ""
		}
		return "the router does not tell whether its launch nonce is good"
	}
	if !ok {
		root = p
		s.admitCandidate(q.ModuleID, p)
	}
	if !s.pin(q.ModuleID, q.Nonce, root) {
		return fmt.Sprintf("the nonce that pid %d presents is another launch's", p.PID)
	}
	return ""
}

// pidsOf names the module's living launches for a reason, "" when there is none.
func (s *span) pidsOf(moduleID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.modules[moduleID]
	if m == nil || len(m.live) == 0 {
		return ""
	}
	var pids []string
	for _, generation := range slices.Sorted(maps.Keys(m.live)) {
		pids = append(pids, strconv.FormatUint(uint64(m.live[generation].pid), 10))
	}
	return ", which is pid " + strings.Join(pids, " or ")
}

// probe asks the router about a nonce until it tells something. A nonce that was
// no launch's once never is: its connection is told so without asking.
func (s *span) probe(q proxy.Question) router.Verdict {
	s.mu.Lock()
	m := s.moduleLocked(q.ModuleID)
	print, told := s.foreign[q.Conn]
	s.mu.Unlock()
	if told && print == fingerprintOf(q.Nonce) {
		return router.Foreign
	}
	for try := range permitTries {
		if try > 0 && !s.pause(standingPause) {
			break
		}
		if !s.takeTurn(m) {
			break
		}
		v := s.attest(q.ModuleID, q.Nonce)
		s.giveTurn(m)
		if v == router.Foreign {
			s.mu.Lock()
			s.foreign[q.Conn] = fingerprintOf(q.Nonce)
			s.mu.Unlock()
			s.forget(q.Conn)
		}
		if v != router.Unknown {
			return v
		}
	}
	return router.Unknown
}

// launchOf returns the launch of the module that p belongs to. A router without
// a feed names no launches: there whoever descends from the router does.
func (s *span) launchOf(moduleID string, p Process) (Process, bool) {
	tree := s.t.now().tree()
	if !s.feed {
		return p, s.childOfRouter(p, tree)
	}
	for _, root := range s.roots(moduleID) {
		if s.t.descends(p, root, tree) {
			return root, true
		}
	}
	return Process{}, false
}

func (s *span) roots(moduleID string) []Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.modules[moduleID]
	if m == nil {
		return nil
	}
	var roots []Process
	for _, l := range m.live {
		if l.seen.Start != 0 {
			roots = append(roots, l.seen)
		}
	}
	if m.swap != nil {
		roots = append(roots, *m.swap)
	}
	return roots
}

// childOfRouter reports whether the router is p's parent or, in a tree, any
// ancestor.
func (s *span) childOfRouter(p Process, tree bool) bool {
	for range maxDepth {
		parent, ok := s.t.p.Attributor.Parent(p)
		if !ok {
			return false
		}
		if parent.PID == s.link().PID {
			return true
		}
		if !tree {
			return false
		}
		p = parent
	}
	return false
}

// pinnedTo reports whether the nonce was verified for this launch before.
func (s *span) pinnedTo(moduleID, nonce string, root Process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.modules[moduleID]
	if m == nil || nonce == "" {
		return false
	}
	pinned, ok := m.pinned[fingerprintOf(nonce)]
	return ok && pinned.Same(root)
}

// pin ties a verified nonce to the launch that used it first. It returns false
// when that was another one that still lives.
func (s *span) pin(moduleID, nonce string, root Process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.moduleLocked(moduleID)
	if pinned, ok := m.pinned[fingerprintOf(nonce)]; ok && !pinned.Same(root) {
		return false
	}
	m.pinned[fingerprintOf(nonce)] = root
	return true
}

// short keeps a name that a caller chose to a readable length.
func short(name string) string {
	if len(name) > 64 {
		name = name[:64]
	}
	return name
}
