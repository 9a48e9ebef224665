package main

import "slices"

// values are figures by metric.
type values map[string]float64

// measure takes the figures of one world. Missing ones are not measured there.
type measure func(*world, effort) (values, error)

// step is a measurement and the metrics it fills.
type step struct {
	fills []string
	in    []string // the worlds it makes sense in
	run   measure
}

// phase is a life of the worlds: its steps run in order on the same ones.
type phase struct {
	name  string
	steps []step
}

// phases are a round. The order of steps matters where one leaves routes or
// memory behind.
func phases() []phase {
	all := worldNames()
	proxies := []string{worldHAProxy, worldPlain, worldOurs}
	scoped := []string{worldOurs, worldNative}
	return []phase{
		{"idle", []step{
			{[]string{rssIdle}, proxies, measureIdle},
		}},
		{"relay", []step{
			{[]string{echo32Rate, echo32CPU}, all, measureCrowd},
			{[]string{echoDeepRate}, all, measureWindow(echoDeepRate, smallBody, 64, 1)},
			{[]string{echoSeq}, all, measureSequence},
			{[]string{echoMid}, all, measureWindow(echoMid, midBody, 8, midBody/mega)},
			{[]string{echoLarge}, all, measureWindow(echoLarge, largeBody, 1, largeBody/mega)},
			{[]string{connectP50}, all, measureConnect},
			{[]string{rssPeak}, proxies, measurePeak(rssPeak)},
		}},
		{"opens", []step{
			{[]string{openP50}, all, measureOpen},
			{[]string{openCloseRate}, all, measureChurn},
		}},
		{"scopes", []step{
			{[]string{syncFirst, syncUnchanged, syncOne, rssRecords, rssRecord}, scoped, measureSync},
			{[]string{applyFew, applyMany, applyGrowth}, scoped, measureApply},
			{[]string{describeP50}, scoped, measureDescribe},
			{[]string{openScopedP50}, scoped, measureScopedOpen},
		}},
	}
}

// selected keeps the steps that fill a wanted metric in a wanted world, and the
// phases that have one.
func selected(all []phase, wanted func(metric string) bool, worlds []string) []phase {
	var kept []phase
	for _, p := range all {
		steps := slices.DeleteFunc(slices.Clone(p.steps), func(s step) bool {
			return !slices.ContainsFunc(s.fills, wanted) || len(common(s.in, worlds)) == 0
		})
		if len(steps) > 0 {
			kept = append(kept, phase{p.name, steps})
		}
	}
	return kept
}

// worlds are those of a phase that some step of it visits.
func (p phase) worlds(worlds []string) []string {
	return slices.DeleteFunc(slices.Clone(worlds), func(w string) bool {
		return !slices.ContainsFunc(p.steps, func(s step) bool { return slices.Contains(s.in, w) })
	})
}

// common keeps those of b that are in a, in b's order.
func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(b), func(x string) bool { return !slices.Contains(a, x) })
}
