package main

import (
	"bytes"
	"fmt"
	"time"
)

const milli = 1e3

// measureSync sends 10,000 records to a table that has none, again unchanged,
// and again with one of them changed. It reads what they cost in memory.
func measureSync(w *world, e effort) (values, error) {
	var before float64
	var err error
	if w.proxy != nil {
		if before, err = settled(w.proxy); err != nil {
			return nil, err
		}
	}
	o, err := w.owner(moduleOwner, e.Records)
	if err != nil {
		return nil, err
	}
	v := values{syncFirst: o.first.Seconds() * milli}
	if w.proxy != nil {
		after, err := settled(w.proxy)
		if err != nil {
			return nil, err
		}
		v[rssRecord] = (after - before) / kib / float64(e.Records)
	}
	var unchanged, one []float64
	for i := range e.Syncs {
		took, err := o.sync("unchanged", e.Records)
		if err != nil {
			return nil, err
		}
		unchanged = append(unchanged, took.Seconds()*milli)
		o.change(i * e.Records / e.Syncs)
		if took, err = o.sync("updated", 1); err != nil {
			return nil, err
		}
		one = append(one, took.Seconds()*milli)
	}
	v[syncUnchanged], v[syncOne] = median(unchanged), median(one)
	if w.proxy != nil {
		peak, err := w.proxy.memory("VmHWM")
		if err != nil {
			return nil, err
		}
		v[rssRecords] = peak / mib
	}
	return v, nil
}

// measureApply changes one record at a time of an owner with 1,000 and of one
// with 10,000.
func measureApply(w *world, e effort) (values, error) {
	few, err := timeApplies(w, moduleSmall, e.Few, e.Applies)
	if err != nil {
		return nil, err
	}
	many, err := timeApplies(w, moduleOwner, e.Records, e.Applies)
	if err != nil {
		return nil, err
	}
	return values{applyFew: few, applyMany: many, applyGrowth: many / few}, nil
}

func timeApplies(w *world, module string, records, n int) (float64, error) {
	o, err := w.owner(module, records)
	if err != nil {
		return 0, err
	}
	samples := make([]float64, n)
	for i := range samples {
		took, err := o.apply(i * records / n)
		if err != nil {
			return 0, fmt.Errorf("apply %d of %s: %w", i, module, err)
		}
		samples[i] = took.Seconds() * milli
	}
	return percentile(samples, 50), nil
}

// measureDescribe reads one scope after another of an owner with 10,000.
func measureDescribe(w *world, e effort) (values, error) {
	o, err := w.owner(moduleOwner, e.Records)
	if err != nil {
		return nil, err
	}
	samples := make([]float64, e.Describes)
	for i := range samples {
		body := describeBody(i * e.Records / e.Describes)
		from := time.Now()
		answer, err := o.ask(body)
		samples[i] = time.Since(from).Seconds()
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(answer, []byte(`"status":"live"`)) {
			return nil, fmt.Errorf("scope %d is described as not live", i)
		}
	}
	return values{describeP50: percentile(samples, 50) * mega}, nil
}

// measureScopedOpen opens routes as a carrier under a scope of an owner with
// 10,000.
func measureScopedOpen(w *world, e effort) (values, error) {
	if _, err := w.owner(moduleOwner, e.Records); err != nil {
		return nil, err
	}
	body := openBody(moduleEcho, w.launches[moduleCarrier], selector(e.Records/2))
	v, err := timeOpens(w, body, e.Opens)
	return values{openScopedP50: v}, err
}
