package main

import "fmt"

// The metrics, by the names of the command line.
const (
	echo32Rate    = "echo32-rate"
	echo32CPU     = "echo32-cpu"
	echoDeepRate  = "echo-deep-rate"
	echoSeq       = "echo-seq-p50"
	echoMid       = "echo64k-mbs"
	echoLarge     = "echo4m-mbs"
	connectP50    = "connect-p50"
	openP50       = "open-p50"
	openScopedP50 = "open-scoped-p50"
	openCloseRate = "open-close-rate"
	syncFirst     = "sync-first"
	syncUnchanged = "sync-unchanged"
	syncOne       = "sync-one"
	applyFew      = "apply-1k"
	applyMany     = "apply-10k"
	applyGrowth   = "apply-growth"
	describeP50   = "describe-p50"
	rssPeak       = "rss-peak"
	rssRecords    = "rss-records"
	rssRecord     = "rss-per-record"
	rssIdle       = "rss-per-idle"
)

// metric is a row of the table.
type metric struct {
	id    string
	title string
	unit  string
	goal  goal
}

// goal is what our world has to reach. The zero goal is none.
type goal struct {
	base  string  // the world it is compared with, "" for a bound on our figure itself
	least bool    // the bound is the least that is good and not the most
	bound float64 // of the ratio to base, or in the metric's unit
}

func atMost(bound float64, base string) goal  { return goal{base: base, bound: bound} }
func atLeast(bound float64, base string) goal { return goal{base: base, least: true, bound: bound} }

func (g goal) none() bool { return g.bound == 0 }

// met judges a ratio to the base, or our figure where there is no base.
func (g goal) met(value float64) bool {
	if g.least {
		return value >= g.bound
	}
	return value <= g.bound
}

func (g goal) text(unit string) string {
	if g.none() {
		return "–"
	}
	sign := "≤"
	if g.least {
		sign = "≥"
	}
	if g.base != "" {
		return fmt.Sprintf("%s %.2f x %s", sign, g.bound, g.base)
	}
	return fmt.Sprintf("%s %s", sign, figure(g.bound, unit))
}

// metrics are the table's rows in order.
func metrics() []metric {
	return []metric{
		{echo32Rate, "echo 64 B, 32 clients", "calls/s", atLeast(1.03, worldHAProxy)},
		{echo32CPU, "CPU of the proxy a call, 32 clients", "µs", atMost(0.95, worldHAProxy)},
		{echoDeepRate, "echo 64 B, one client, 64 in flight", "calls/s", atLeast(1.15, worldHAProxy)},
		{echoSeq, "echo 64 B, sequential, p50", "µs", atMost(0.85, worldHAProxy)},
		{echoMid, "echo 64 KiB, 8 in flight", "MB/s", atLeast(1.3, worldHAProxy)},
		{echoLarge, "echo 4 MiB", "MB/s", atLeast(1.15, worldHAProxy)},
		{connectP50, "connect + authenticate + describe, p50", "µs", atMost(1, worldHAProxy)},
		{openP50, "route.open unscoped, p50", "µs", atMost(1, worldHAProxy)},
		{openScopedP50, "route.open scoped, p50", "µs", atMost(1.4, worldNative)},
		{openCloseRate, "open + close, 32 pending", "/s", atLeast(1, worldHAProxy)},
		{syncFirst, "scope.sync of 10,000, first", "ms", atMost(0.25, worldNative)},
		{syncUnchanged, "scope.sync of 10,000, unchanged", "ms", atMost(0.10, worldNative)},
		{syncOne, "scope.sync of 10,000, one changed", "ms", atMost(0.10, worldNative)},
		{applyFew, "scope.apply of one, 1,000 held, p50", "ms", goal{}},
		{applyMany, "scope.apply of one, 10,000 held, p50", "ms", atMost(0.05, worldNative)},
		{applyGrowth, "scope.apply, growth from 1,000 to 10,000", "x", atMost(1.2, "")},
		{describeP50, "scope.describe, 10,000 held, p50", "µs", atMost(1, worldNative)},
		{rssPeak, "peak memory of the proxy, relay rows", "MiB", atMost(40, "")},
		{rssRecords, "peak memory of the proxy, 10,000 records", "MiB", goal{}},
		{rssRecord, "memory a record", "KiB", atMost(2, "")},
		{rssIdle, "memory an idle connection", "KiB", atMost(24, "")},
	}
}
