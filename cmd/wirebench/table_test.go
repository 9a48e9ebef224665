package main

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

func TestFiguresKeepThreeDigitsOrWholeUnits(t *testing.T) {
	for want, v := range map[string]float64{
		"–": math.NaN(), "0.0123": 0.01234, "1.76": 1.7649, "58.9": 58.94,
		"354": 353.6, "1,144": 1143.5, "310,026": 310025.9, "1,234,567": 1234567, "-1,234": -1234,
	} {
		require.Equal(t, want, figure(v, "µs"))
	}
	require.Equal(t, "15.90", figure(15.9, "x"))
}

func TestGoalsAreJudgedOnTheSideTheyName(t *testing.T) {
	least, most := atLeast(1.03, worldHAProxy), atMost(0.85, worldHAProxy)
	require.Equal(t, "met", verdict(metric{goal: least}, 1.03))
	require.Equal(t, "missed", verdict(metric{goal: least}, 1.02))
	require.Equal(t, "met", verdict(metric{goal: most}, 0.85))
	require.Equal(t, "missed", verdict(metric{goal: most}, 0.86))
	require.Equal(t, "not measured", verdict(metric{goal: most}, math.NaN()))
	require.Empty(t, verdict(metric{}, 1))
}

// filled is a sheet in which our world misses the second of two rounds.
func filled() *sheet {
	s := newSheet(2)
	s.put(0, worldHAProxy, values{echo32Rate: 40000, rssPeak: 14.7})
	s.put(1, worldHAProxy, values{echo32Rate: 50000, rssPeak: 15.7})
	s.put(0, worldOurs, values{echo32Rate: 44000, rssPeak: 41})
	return s
}

func twoRows() []metric {
	return []metric{
		{echo32Rate, "echo", "calls/s", atLeast(1.03, worldHAProxy)},
		{rssPeak, "peak", "MiB", atMost(40, "")},
	}
}

func TestTheTableHoldsMediansRatiosAndVerdicts(t *testing.T) {
	var b strings.Builder
	require.NoError(t, writeTable(&b, filled(), twoRows(), []string{worldDirect, worldHAProxy, worldOurs}))
	require.Equal(t, strings.TrimLeft(`
| metric        | direct | haproxy | ours   | ratio (range)    | goal             |        |
|---------------|--------|---------|--------|------------------|------------------|--------|
| echo, calls/s | –      | 45,000  | 44,000 | 1.10 (1.10–1.10) | ≥ 1.03 x haproxy | met    |
| peak, MiB     | –      | 15.2    | 41.0   | –                | ≤ 40.0           | missed |
`, "\n"), b.String())
}

func TestTheReportSaysNullForWhatWasNotMeasured(t *testing.T) {
	s := filled()
	s.fail(1, worldOurs, echo32Rate, errors.New("read: EOF"))
	text, err := newReport(facts{}, s, twoRows()).render()
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(text, &r))
	echo := r.Metrics[0]
	require.Equal(t, "met", echo.Verdict)
	require.InDelta(t, 1.1, *echo.Ratios[worldHAProxy], 1e-9)
	require.Nil(t, echo.Worlds[worldOurs].Rounds[1])
	require.InDelta(t, 44000, *echo.Worlds[worldOurs].Median, 0)
	require.Equal(t, []failure{{Round: 2, World: worldOurs, What: echo32Rate, Error: "read: EOF"}}, r.Failures)
}

func TestEveryMetricIsFilledByOneStep(t *testing.T) {
	filled := make(map[string]int)
	for _, p := range phases() {
		for _, s := range p.steps {
			for _, id := range s.fills {
				filled[id]++
			}
		}
	}
	for _, m := range metrics() {
		require.Equal(t, 1, filled[m.id], m.id)
	}
	require.Len(t, filled, len(metrics()))
}

func TestWorldsTakeTurns(t *testing.T) {
	list := []string{"a", "b", "c"}
	firsts := make(map[string]bool)
	for round := range 6 {
		order := turned(list, round)
		require.ElementsMatch(t, list, order)
		firsts[order[0]] = true
	}
	require.Len(t, firsts, 3)
	require.NotEqual(t, turned(list, 0), turned(list, 1))
}
