package sidecar

import (
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"scopeward/sidecar/config"
	"scopeward/sidecar/operator/api"
)

// reloadable are the keys that a running sidecar can change. attribution.mode is
// one of them between observe and enforce, while there is a source: on and off
// take a listener that nobody has connected to yet.
var reloadable = []string{"attribution.mode", "attribution.match", "log.level"}

// reload reads the configuration again. It is taken whole, but for what needs a
// restart, which is named and stays as it is; or it is not taken at all, and the
// log says why.
func (s *Sidecar) reload(load func() (config.Config, error)) {
	if err := s.manager.Reloading(); err != nil {
		s.log.Warn("the service manager was not told of the reload", zap.Error(err))
	}
	defer s.announce()
	c, err := load()
	if err != nil {
		s.log.Error("the configuration was not reloaded: the one in use stays", zap.Error(err))
		seen := *s.reloads.Load()
		seen.RefusedAtMS, seen.Fault = time.Now().UnixMilli(), err.Error()
		s.reloads.Store(&seen)
		return
	}
	applied, waiting := s.apply(c)
	s.reloads.Store(&api.Config{ReloadedAtMS: time.Now().UnixMilli(), Waiting: append([]string{}, waiting...)})
	s.log.Info("the configuration was reloaded", zap.Strings("changed", applied))
	if len(waiting) > 0 {
		s.log.Warn("a changed key needs a restart and stays as it was until then: "+strings.Join(waiting, ", "),
			zap.Strings("keys", waiting))
	}
}

// apply takes over what can be taken over of c. It returns the keys that it
// changed, and those that differ and need a restart.
func (s *Sidecar) apply(c config.Config) (applied, waiting []string) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	for _, key := range config.Differences(s.running, c) {
		switch {
		case !slices.Contains(reloadable, key),
			key == "attribution.mode" && !s.attribution.mayBe(c.Attribution.Mode):
			waiting = append(waiting, key)
		default:
			applied = append(applied, key)
		}
	}
	next := s.running
	if slices.Contains(applied, "attribution.mode") {
		next.Attribution.Mode = c.Attribution.Mode
		s.attribution.setMode(c.Attribution.Mode)
	}
	next.Attribution.Match, next.Log.Level = c.Attribution.Match, c.Log.Level
	s.launches.SetPolicy(s.attribution.effective(), next.Attribution.Match)
	if s.level != nil {
		s.level.SetLevel(zapLevel(next.Log.Level))
	}
	s.running = next
	return applied, waiting
}
