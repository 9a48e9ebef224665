package main

import (
	"math"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// report is a run as JSON. A figure that was not taken is null.
type report struct {
	Facts    facts     `json:"facts"`
	Metrics  []row     `json:"metrics"`
	Failures []failure `json:"failures"`
}

type row struct {
	ID      string              `json:"id"`
	Title   string              `json:"title"`
	Unit    string              `json:"unit"`
	Goal    string              `json:"goal"`
	Verdict string              `json:"verdict"` // met, missed, not measured, "" without a goal
	Judged  *float64            `json:"judged"`  // what the goal is held against
	Ratios  map[string]*float64 `json:"ratios"`  // median of our same-round ratios, by world
	Worlds  map[string]column   `json:"worlds"`
}

type column struct {
	Median *float64   `json:"median"`
	Rounds []*float64 `json:"rounds"`
}

func newReport(f facts, s *sheet, rows []metric) report {
	r := report{Facts: f, Metrics: []row{}, Failures: append([]failure{}, s.failures...)}
	for _, m := range rows {
		judged := median(s.judged(m))
		line := row{
			ID: m.id, Title: m.title, Unit: m.unit, Goal: m.goal.text(m.unit),
			Verdict: verdict(m, judged), Judged: number(judged),
			Ratios: make(map[string]*float64), Worlds: make(map[string]column),
		}
		for _, w := range s.worlds(m.id) {
			rounds := s.of(m.id, w)
			c := column{Median: number(median(rounds)), Rounds: make([]*float64, len(rounds))}
			for i, v := range rounds {
				c.Rounds[i] = number(v)
			}
			line.Worlds[w] = c
			if ours := s.of(m.id, worldOurs); ours != nil && w != worldOurs {
				line.Ratios[w] = number(median(ratios(ours, rounds)))
			}
		}
		r.Metrics = append(r.Metrics, line)
	}
	return r
}

// number is nil for NaN, which JSON doesn't know.
func number(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

func (r report) render() ([]byte, error) {
	b, err := json.Marshal(r, json.Deterministic(true), jsontext.WithIndent("  "))
	return append(b, '\n'), err
}
