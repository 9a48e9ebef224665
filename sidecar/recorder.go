package sidecar

import (
	"strconv"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"scopeward/proxy"
)

// recorder writes every decision to the log.
type recorder struct{ log *zap.Logger }

// Record implements [proxy.Recorder].
func (r recorder) Record(d proxy.Decision) {
	level, text := wording(d.Kind)
	if e := r.log.Check(level, text); e != nil {
		e.Write(decisionFields(d)...)
	}
}

// wording gives each kind its line. What the router does all day is for
// debugging; what was refused or ended is for the operator.
func wording(k proxy.DecisionKind) (zapcore.Level, string) {
	switch k {
	case proxy.Expired:
		return zap.WarnLevel, "a scope has expired"
	case proxy.PeerRefused:
		return zap.WarnLevel, "an identity was refused"
	case proxy.Refused, proxy.Stale, proxy.CallRefused:
		return zap.InfoLevel, "refused"
	case proxy.Drained:
		return zap.InfoLevel, "routes were closed"
	}
	return zap.DebugLevel, "decided"
}

func decisionFields(d proxy.Decision) []zap.Field {
	f := []zap.Field{zap.Stringer("kind", d.Kind), zap.Uint64("conn", d.Conn)}
	add := func(key, value string) {
		if value != "" {
			f = append(f, zap.String(key, Quote(value)))
		}
	}
	add("principal", d.Principal.String())
	add("owner", d.Scope.Owner.String())
	add("ref", d.Scope.Ref)
	if d.Scope.Ref != "" {
		f = append(f, zap.Uint64("epoch", d.Scope.Epoch))
	}
	add("target", d.Target)
	add("rule", d.Rule)
	add("code", d.Code)
	if d.Routes != 0 || d.Kind == proxy.Expired || d.Kind == proxy.Drained {
		f = append(f, zap.Int("routes", d.Routes))
	}
	if d.Deadline != 0 {
		f = append(f, zap.Int64("deadline_ms", d.Deadline))
	}
	return f
}

// maxQuoted is how much of a name that a caller chose a log line shows, in
// bytes.
const maxQuoted = 64

// Quote makes a name that a caller chose fit for a log line: escaped, in quotes
// when it had to be, and cut.
func Quote(s string) string {
	if len(s) > maxQuoted {
		s = s[:maxQuoted]
	}
	q := strconv.QuoteToASCII(s)
	if q == `"`+s+`"` {
		return s
	}
	return q
}
