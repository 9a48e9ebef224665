package main

import "time"

// effort is how long and how often everything is measured. Opens, connects and
// scope calls are counted and not timed, so that every world's router has seen
// the same.
type effort struct {
	Rounds int           `json:"rounds"`
	Limit  time.Duration `json:"-"` // of the whole run
	Warm   time.Duration `json:"-"` // of load before each timed span
	Span   time.Duration `json:"-"` // of one relay measurement

	Connects  int `json:"connects"`
	Opens     int `json:"opens"`   // one after another, scoped and not
	Churn     int `json:"churn"`   // opens of the open and close measurement
	Idle      int `json:"idle"`    // connections that say nothing
	Records   int `json:"records"` // scopes of the large owner
	Few       int `json:"few"`     // scopes of the small one
	Syncs     int `json:"syncs"`   // of each kind but the first
	Applies   int `json:"applies"` // for each owner
	Describes int `json:"describes"`
}

func fullEffort() effort {
	return effort{
		Rounds: 10, Limit: 40 * time.Minute, Warm: 300 * time.Millisecond, Span: 2 * time.Second,
		Connects: 1000, Opens: 1000, Churn: 8000, Idle: 1000,
		Records: 10_000, Few: 1000, Syncs: 3, Applies: 25, Describes: 1000,
	}
}

// shortEffort ends in three minutes, on a slow machine with fewer rounds.
func shortEffort() effort {
	e := fullEffort()
	e.Rounds, e.Limit = 5, 170*time.Second
	e.Warm, e.Span = 100*time.Millisecond, 500*time.Millisecond
	e.Connects, e.Opens, e.Churn = 300, 300, 3000
	e.Syncs, e.Applies, e.Describes = 1, 11, 300
	return e
}
