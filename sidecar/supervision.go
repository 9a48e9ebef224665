package sidecar

import (
	"context"
	"time"

	"go.uber.org/zap"

	"scopeward/sidecar/operator/api"
)

// pulseEvery is how often the service manager is told how we are when it has no
// watchdog.
const pulseEvery = 10 * time.Second

// supervise tells the service manager how we are until ctx ends. The watchdog's
// ping goes out only after the probe through ourselves answered; an absent
// router is a state and fails no probe. A probe that waits for longer than the
// watchdog is one that did not answer.
func (s *Sidecar) supervise(ctx context.Context) {
	if !s.manager.Notified() {
		return
	}
	every := pulseEvery
	if d := s.manager.Watchdog(); d > 0 {
		every = d / 3
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	wasLive := true
	for {
		h := s.Health(ctx)
		if ctx.Err() != nil {
			return
		}
		if wasLive && !h.Live {
			s.log.Error("the probe through ourselves fails: the watchdog is not pinged", zap.String("why", fault(h)))
		}
		wasLive = h.Live
		if err := s.manager.Pulse(h.Live, condition(h)); err != nil {
			s.log.Warn("the service manager was not told how we are", zap.Error(err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// condition is a probe's outcome in one line.
func condition(h api.Health) string {
	switch {
	case h.Ready:
		return "ready: routes can be opened"
	case !h.Live:
		return "not live: " + fault(h)
	}
	return "live, not ready: " + fault(h)
}

// fault names the first step that keeps a sidecar from being ready.
func fault(h api.Health) string {
	for _, st := range h.Steps {
		if st.State == "failed" {
			return st.Name + ": " + st.Detail
		}
	}
	for _, st := range h.Steps {
		if st.State == "absent" && st.Name != "attribute" {
			return st.Detail
		}
	}
	return "the connection file is not published"
}

// announce says that we are ready: listening and watching.
func (s *Sidecar) announce() {
	status := "waiting for the router"
	if s.Router().Attached {
		status = "the router is there"
	}
	if err := s.manager.Ready(status); err != nil {
		s.log.Warn("the service manager was not told that we are ready", zap.Error(err))
	}
}
