package main

import (
	"bytes"
	"fmt"
	"time"
)

// owner is a scope owner's connection and what it has sent.
type owner struct {
	*peer
	set        scopeSet
	generation int
	turn       int // counts changes, so that each is a new content
	first      time.Duration
}

// owner returns the connection of an owner that holds n scopes. The first use
// registers it and syncs; how long that sync took stays known.
func (w *world) owner(module string, n int) (*owner, error) {
	if o := w.owners[module]; o != nil {
		return o, nil
	}
	p, err := register(w.front, w.launches[module])
	if err != nil {
		return nil, err
	}
	o := &owner{peer: p, set: newScopeSet(n)}
	if o.first, err = o.sync("created", n); err != nil {
		p.Close()
		return nil, fmt.Errorf("first sync of %s: %w", module, err)
	}
	if w.owners == nil {
		w.owners = make(map[string]*owner)
	}
	w.owners[module] = o
	return o, nil
}

// sync sends the whole set and times the answer, which must name the outcome
// want times.
func (o *owner) sync(outcome string, want int) (time.Duration, error) {
	o.generation++
	return o.timed(o.set.sync(o.generation), outcome, want)
}

// change gives record i another content.
func (o *owner) change(i int) {
	o.turn++
	o.set[i] = scopeRecord(i, o.turn)
}

// apply sends a change of record i alone.
func (o *owner) apply(i int) (time.Duration, error) {
	o.change(i)
	o.generation++
	return o.timed(applyBody(o.generation, o.set[i]), "updated", 1)
}

func (o *owner) timed(body []byte, outcome string, want int) (time.Duration, error) {
	from := time.Now()
	answer, err := o.ask(body)
	took := time.Since(from)
	if err != nil {
		return 0, err
	}
	if n := bytes.Count(answer, []byte(`"outcome":"`+outcome+`"`)); n != want {
		return 0, fmt.Errorf("%d records %s and not %d", n, outcome, want)
	}
	return took, nil
}
