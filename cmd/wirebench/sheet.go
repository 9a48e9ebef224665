package main

import (
	"maps"
	"math"
	"slices"
)

// sheet holds every figure of a run: metric, world, round.
type sheet struct {
	rounds   int                             // planned
	whole    int                             // finished
	figures  map[string]map[string][]float64 // NaN where none was taken
	failures []failure
	missing  int // steps that gave nothing, and worlds that did not start
}

// failure is a try that gave nothing. A second try may have.
type failure struct {
	Round int    `json:"round"`
	World string `json:"world"`
	What  string `json:"what"`
	Error string `json:"error"`
}

func newSheet(rounds int) *sheet {
	return &sheet{rounds: rounds, figures: make(map[string]map[string][]float64)}
}

// put notes what a measurement brought in a round.
func (s *sheet) put(round int, world string, v values) {
	for id, value := range v {
		byWorld := s.figures[id]
		if byWorld == nil {
			byWorld = make(map[string][]float64)
			s.figures[id] = byWorld
		}
		if byWorld[world] == nil {
			byWorld[world] = slices.Repeat([]float64{math.NaN()}, s.rounds)
		}
		byWorld[world][round] = value
	}
}

func (s *sheet) fail(round int, world, what string, err error) {
	s.failures = append(s.failures, failure{round + 1, world, what, err.Error()})
}

// of returns a metric's figures in a world by round, nil where there are none.
func (s *sheet) of(id, world string) []float64 { return s.figures[id][world] }

// worlds are those that have figures of a metric.
func (s *sheet) worlds(id string) []string { return slices.Sorted(maps.Keys(s.figures[id])) }

// judged is what a goal is held against: our same-round ratios to the base, or
// our figures themselves.
func (s *sheet) judged(m metric) []float64 {
	ours := s.of(m.id, worldOurs)
	if m.goal.base == "" {
		return ours
	}
	return ratios(ours, s.of(m.id, m.goal.base))
}
