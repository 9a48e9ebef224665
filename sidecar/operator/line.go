package operator

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"scopeward/proxy"
	"scopeward/sidecar/operator/api"
)

// wording gives each kind its line. What ended by itself or was not what it said
// it is are warnings.
func wording(kind string) (zapcore.Level, string) {
	switch kind {
	case proxy.Admitted.String():
		return zap.InfoLevel, "an open was admitted"
	case proxy.Refused.String():
		return zap.InfoLevel, "an open was refused"
	case proxy.Committed.String():
		return zap.InfoLevel, "a route is live"
	case proxy.Stale.String():
		return zap.InfoLevel, "a commit came too late"
	case proxy.Rejected.String():
		return zap.InfoLevel, "the module refused a bind"
	case proxy.Drained.String():
		return zap.InfoLevel, "a route was closed"
	case proxy.Synced.String():
		return zap.InfoLevel, "a sync was accepted"
	case proxy.Applied.String():
		return zap.InfoLevel, "an apply was accepted"
	case proxy.CallRefused.String():
		return zap.InfoLevel, "an owner's call was refused"
	case kindRecordAccepted:
		return zap.InfoLevel, "a record was accepted"
	case kindRecordRefused:
		return zap.InfoLevel, "a record was refused"
	case kindEvicted:
		return zap.WarnLevel, "routes were closed by hand"
	case proxy.Expired.String():
		return zap.WarnLevel, "a scope has expired"
	case proxy.PeerRefused.String():
		return zap.WarnLevel, "an identity was refused"
	case kindScopeCreated:
		return zap.InfoLevel, "a scope is live"
	case kindScopeEnded:
		return zap.InfoLevel, "a scope has ended"
	case kindScopeChanged:
		return zap.InfoLevel, "a scope has changed"
	case kindOwnerSynced:
		return zap.InfoLevel, "an owner's first set is known"
	case kindMismatch:
		return zap.WarnLevel, "an identity is presented by a process that it was not given to"
	}
	return zap.InfoLevel, "decided"
}

// write writes an event as one line, at the time of the event.
func write(log *zap.Logger, e *api.Event) {
	level, text := wording(e.Kind)
	if line := log.Check(level, text); line != nil {
		line.Time = time.UnixMilli(e.AtMS)
		line.Write(fields(e)...)
	}
}

// fields are an event's, names quoted and cut. What is unset is left out, but
// for what an expiry must say.
func fields(e *api.Event) []zap.Field {
	f := make([]zap.Field, 0, 20)
	text := func(key, value string) {
		if value != "" {
			f = append(f, zap.String(key, Quote(value)))
		}
	}
	words := func(key, value string) {
		if value != "" {
			f = append(f, zap.String(key, value))
		}
	}
	words("kind", e.Kind)
	if e.Conn != 0 {
		f = append(f, zap.Uint64("conn", e.Conn))
	}
	if e.Opener != 0 {
		f = append(f, zap.Uint64("opener", e.Opener))
	}
	text("principal", e.Principal)
	if e.PID != 0 {
		f = append(f, zap.Int64("pid", e.PID))
	}
	text("exe", e.Exe)
	text("owner", e.Owner)
	if e.ScopeEpoch != nil {
		f = append(f, zap.String("ref", Quote(e.Ref)), zap.Uint64("epoch", *e.ScopeEpoch))
	}
	text("target", e.Target)
	words("rule", e.Rule)
	words("code", e.Code)
	words("message", e.Message)
	expired := e.Kind == proxy.Expired.String()
	if e.Routes != 0 || expired || e.Kind == kindEvicted {
		f = append(f, zap.Int64("routes", e.Routes))
	}
	if e.DeadlineMS != 0 || expired {
		f = append(f, zap.Int64("deadline_ms", e.DeadlineMS))
	}
	if e.ElapsedUS != 0 {
		f = append(f, zap.Int64("elapsed_us", e.ElapsedUS))
	}
	words("digest", e.Digest)
	if c := e.Call; c != nil {
		f = append(f, zap.Uint64("generation", c.Generation), zap.Int64("created", c.Created),
			zap.Int64("replaced", c.Replaced), zap.Int64("updated", c.Updated), zap.Int64("unchanged", c.Unchanged),
			zap.Int64("refused", c.Refused), zap.Int64("ended", c.Ended), zap.Int64("expired", c.Expired))
	}
	text("who", e.Who)
	text("why", e.Why)
	return f
}
