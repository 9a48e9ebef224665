package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func missing() float64 { return math.NaN() }

func TestPercentileIsANearestRank(t *testing.T) {
	for _, c := range []struct {
		name    string
		samples []float64
		p, want float64
	}{
		{"one sample is every percentile", []float64{7}, 50, 7},
		{"half of an even number is the lower middle", []float64{4, 1, 3, 2}, 50, 2},
		{"half of an odd number is the middle", []float64{5, 1, 4, 2, 3}, 50, 3},
		{"no percent is the least", []float64{3, 1, 2}, 0, 1},
		{"all percent is the most", []float64{3, 1, 2}, 100, 3},
		{"99 of 100", hundred(), 99, 99},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.InDelta(t, c.want, percentile(c.samples, c.p), 0)
		})
	}
	require.True(t, math.IsNaN(percentile(nil, 50)))
}

func hundred() []float64 {
	v := make([]float64, 100)
	for i := range v {
		v[i] = float64(100 - i)
	}
	return v
}

func TestPercentileCoversItsShareOfTheSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 50).Draw(t, "samples")
		p := rapid.Float64Range(0, 100).Draw(t, "p")
		got := percentile(samples, p)
		require.Contains(t, samples, got)
		atMost, below := 0, 0
		for _, v := range samples {
			if v <= got {
				atMost++
			}
			if v < got {
				below++
			}
		}
		share := p / 100 * float64(len(samples))
		require.GreaterOrEqual(t, float64(atMost), share)
		require.LessOrEqual(t, float64(below), share)
	})
}

func TestMedianSkipsWhatIsMissing(t *testing.T) {
	require.InDelta(t, 2, median([]float64{3, missing(), 1, 2}), 0)
	require.InDelta(t, 2.5, median([]float64{4, 1, missing(), 2, 3}), 0)
	require.True(t, math.IsNaN(median([]float64{missing()})))
	require.True(t, math.IsNaN(median(nil)))
}

func TestMedianLeavesTheRoundsInOrder(t *testing.T) {
	rounds := []float64{3, 1, 2}
	median(rounds)
	require.Equal(t, []float64{3, 1, 2}, rounds)
}

func TestRatiosAreOfTheSameRound(t *testing.T) {
	got := ratios([]float64{10, missing(), 30, 40}, []float64{5, 1, missing(), 0})
	require.Len(t, got, 4)
	require.Equal(t, []float64{2}, present(got))
}

func TestTheMedianOfRatiosIsNotTheRatioOfMedians(t *testing.T) {
	s := newSheet(3)
	for round, pair := range [][2]float64{{10, 10}, {40, 20}, {90, 30}} {
		s.put(round, worldOurs, values{echoSeq: pair[0]})
		s.put(round, worldHAProxy, values{echoSeq: pair[1]})
	}
	m := metric{echoSeq, "", "µs", atMost(1, worldHAProxy)}
	require.Equal(t, []float64{1, 2, 3}, s.judged(m))
}
