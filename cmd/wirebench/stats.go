package main

import (
	"math"
	"slices"
)

// percentile is the smallest sample that at least p percent of the samples do
// not exceed. It is NaN for none. The samples are sorted in place.
func percentile(samples []float64, p float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	slices.Sort(samples)
	rank := int(math.Ceil(p / 100 * float64(len(samples))))
	return samples[max(rank, 1)-1]
}

// median is the middle of the values that are not NaN, the mean of the middle
// two when they are even in number, and NaN for none.
func median(values []float64) float64 {
	v := present(values)
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	mid := len(v) / 2
	if len(v)%2 == 1 {
		return v[mid]
	}
	return (v[mid-1] + v[mid]) / 2
}

// ratios divides a by b, index by index. What is missing on either side is NaN.
func ratios(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		if b[i] == 0 {
			out[i] = math.NaN()
			continue
		}
		out[i] = a[i] / b[i]
	}
	return out
}

// present drops the NaN.
func present(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}
