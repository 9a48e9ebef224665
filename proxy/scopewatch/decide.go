package scopewatch

import (
	"context"
	"slices"
	"time"
)

// Decide says what becomes of a stored binding now (section 5). It acts only in
// case 1; in cases 2 and 3 the provider may delete what it stores; in cases 4 and
// 5 it keeps it, for as long as its own expiry allows, and asks again.
//
// It answers from memory, or asks scope.describe once, within ctx and 5 s. What
// could not be asked is case 4.
func (w *Watcher) Decide(ctx context.Context, b Binding) Verdict {
	w.mu.Lock()
	v, known := w.judgeLocked(b)
	w.mu.Unlock()
	if !known {
		v, _ = w.describe(ctx, b)
	}
	return v
}

// judgeLocked decides from memory, while memory is what the feed has told.
func (w *Watcher) judgeLocked(b Binding) (Verdict, bool) {
	if !w.toldLocked(b.Owner) {
		return held(), false
	}
	return w.memory.judge(b)
}

// toldLocked says whether the feed tells of an owner's scopes now.
func (w *Watcher) toldLocked(p Principal) bool {
	return w.current && (w.p.Owners == nil || slices.Contains(w.p.Owners, p))
}

// Hold decides for a live call: in case 4 it waits, within ctx and at most 45 s,
// until the owner has synced, and then refuses it [CodeUnverifiable]. Its verdict
// is never [Verdict.Held] without that code.
func (w *Watcher) Hold(ctx context.Context, b Binding) Verdict {
	ctx, cancel := context.WithTimeout(ctx, w.p.Bound)
	defer cancel()
	v := w.wait(ctx, b, func(v Verdict) bool { return !v.Held() })
	if v.Held() {
		v.Code = CodeUnverifiable
	}
	return v
}

// Ended waits until a binding is dead, for work that runs under a scope longer
// than its call (section 7). The verdict is not [Verdict.Dead] exactly when ctx
// ended first. A route's close, a router that is gone, an owner that has not
// synced: none of them ends it.
func (w *Watcher) Ended(ctx context.Context, b Binding) Verdict {
	return w.wait(ctx, b, Verdict.Dead)
}

// wait decides again whenever something may have changed, until enough or ctx's
// end. Where the feed tells of the owner and memory can't, scope.describe is asked
// until it has answered once; where the feed does not tell, once each interval.
func (w *Watcher) wait(ctx context.Context, b Binding, enough func(Verdict) bool) Verdict {
	again := time.NewTimer(w.p.Interval)
	defer again.Stop()
	asked := false
	for {
		w.mu.Lock()
		changed := w.awaitLocked(b.key())
		v, known := w.judgeLocked(b)
		told := w.toldLocked(b.Owner)
		w.mu.Unlock()
		if !known && !(told && asked) {
			v, asked = w.describe(ctx, b)
		}
		if enough(v) || ctx.Err() != nil {
			w.leave(b.key(), changed)
			return v
		}
		again.Reset(w.p.Interval)
		select {
		case <-changed.fired:
		case <-again.C:
		case <-ctx.Done():
		}
		w.leave(b.key(), changed)
	}
}
