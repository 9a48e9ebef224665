package launch

import (
	"context"
	"sync"
	"time"
)

// rosterFor is how long one answer of the router serves: it is asked at most
// once in that time.
const rosterFor = time.Second

// roster is the router's list of configured modules, asked when it is needed.
type roster struct {
	mu     sync.Mutex
	at     time.Time // when ids was answered; zero: never, or not to be trusted
	ids    map[string]struct{}
	flight *flight // the question under way, nil when there is none
}

// flight is one question that many wait for.
type flight struct {
	done  chan struct{}
	ids   map[string]struct{} // nil when the router did not answer
	stale bool                // it may be answered without a launch that we know of
}

// cached answers from an answer that still serves.
func (r *roster) cached(id string) (configured, fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) >= rosterFor {
		return false, false
	}
	_, configured = r.ids[id]
	return configured, true
}

// distrust drops an answer that can't know id: the router has launched it since.
func (r *roster) distrust(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.ids[id]; !ok {
		r.at = time.Time{}
	}
	if r.flight != nil {
		r.flight.stale = true
	}
}

// configured asks the router whether id is a configured module, a disabled one
// included. A router that does not answer counts as having said yes: the caller
// then waits for a sync instead of being refused for good.
func (s *span) configured(id string) bool {
	if configured, fresh := s.roster.cached(id); fresh {
		return configured
	}
	f, first := s.roster.join()
	if first {
		s.job(func() { s.fetch(f) })
	}
	timer := time.NewTimer(answerIn)
	defer timer.Stop()
	select {
	case <-f.done:
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return true
	}
	if f.ids == nil {
		return true
	}
	_, ok := f.ids[id]
	return ok
}

// join returns the question under way, or a new one that the caller is to ask.
func (r *roster) join() (f *flight, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flight != nil {
		return r.flight, false
	}
	r.flight = &flight{done: make(chan struct{})}
	return r.flight, true
}

// fetch asks. A router that answers late has answered for the questions that
// come then.
func (s *span) fetch(f *flight) {
	ctx, cancel := context.WithTimeout(s.ctx, answerAtAll)
	defer cancel()
	modules, err := s.link().Modules(ctx)
	if err == nil {
		f.ids = make(map[string]struct{}, len(modules))
		for _, m := range modules {
			f.ids[m.ID] = struct{}{}
		}
	}
	r := &s.roster
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.ids != nil && !f.stale {
		r.ids, r.at = f.ids, time.Now()
	}
	r.flight = nil
	close(f.done)
}

const (
	// answerIn is how long a question waits for the roster: after it a module
	// counts as configured.
	answerIn = 2 * time.Second
	// answerAtAll is how long the router may take.
	answerAtAll = 30 * time.Second
)
