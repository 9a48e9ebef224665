package launch

import "scopeward/sidecar/config"

// policy is what a mismatch leads to, and who counts as a launch. It may change
// while the table is in use: a question is judged by what it finds.
type policy struct {
	mode  config.AttributionMode
	match config.Match
}

func (p policy) enforces() bool { return p.mode == config.AttributionEnforce }
func (p policy) tree() bool     { return p.match == config.MatchTree }

// SetPolicy changes Params.Mode and Params.Match. A table that was made without
// an attributor stays off.
func (t *Table) SetPolicy(mode config.AttributionMode, match config.Match) {
	if t.p.Attributor == nil {
		mode = config.AttributionOff
	}
	t.policy.Store(&policy{mode, match})
}

func (t *Table) now() policy { return *t.policy.Load() }
