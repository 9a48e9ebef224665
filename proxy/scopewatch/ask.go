package scopewatch

import (
	"context"
	"time"

	"scopeward/proxy/wire"
)

// ask is one scope.describe under way. Whoever needs the same key meanwhile
// shares it.
type ask struct {
	key      key
	done     chan struct{}
	answer   description
	answered bool // false: refused, or the connection ended
}

// describeBody is a scope.describe.
type describeBody struct {
	Op    string    `json:"op"`
	Owner Principal `json:"owner"`
	Ref   string    `json:"ref"`
}

// askLocked sends a scope.describe, or joins the one under way. It is nil without
// a connection.
func (w *Watcher) askLocked(k key) *ask {
	if a := w.byKey[k]; a != nil {
		return a
	}
	if w.conn == nil {
		return nil
	}
	a := &ask{key: k, done: make(chan struct{})}
	corr := w.conn.NewCorr()
	w.asks[corr], w.byKey[k] = a, a
	w.conn.Send(wire.Header{Type: wire.Request, Corr: corr}, wire.MustMarshal(describeBody{wire.OpScopeDescribe, k.owner, k.ref}))
	return a
}

func (w *Watcher) answerLocked(corr uint64, a *ask, d description, ok bool) {
	delete(w.asks, corr)
	if w.byKey[a.key] == a {
		delete(w.byKey, a.key)
	}
	a.answer, a.answered = d, ok
	close(a.done)
}

// describe asks scope.describe about a binding. An answer that does not come
// holds it: it is false then.
func (w *Watcher) describe(ctx context.Context, b Binding) (Verdict, bool) {
	w.mu.Lock()
	a := w.askLocked(b.key())
	w.mu.Unlock()
	if a == nil {
		return held(), false
	}
	late := time.NewTimer(answerTimeout)
	defer late.Stop()
	select {
	case <-a.done:
		if a.answered {
			return a.answer.judge(b), true
		}
	case <-late.C:
		w.mu.Lock()
		if w.byKey[a.key] == a {
			delete(w.byKey, a.key) // nobody joins one that is late
		}
		w.mu.Unlock()
	case <-ctx.Done():
	}
	return held(), false
}
