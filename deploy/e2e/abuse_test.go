package e2e

import (
	"sync"
	"sync/atomic"
	"testing"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

// TestRefusedOpens: five connections keep eight opens each under way that are
// all refused. The router lets 16 binds of one module wait, and one good opener
// beside them must get its route 99 times of a hundred.
func TestRefusedOpens(t *testing.T) {
	t.Parallel()
	const (
		connections = 5
		pending     = 8
		wanted      = 400
	)
	w := newWorld(t, cast())
	w.play(idOwner, syncStep(1, record("s", 1)))
	w.start()
	w.waitSynced(idOwner, 1)
	admin, good := w.admin(), w.client()

	var refused, busy atomic.Int64
	stop := make(chan struct{})
	var abusers sync.WaitGroup
	body := wire.MustMarshal(w.scoped(idEcho, "s", 7))
	for range connections {
		l := w.client()
		for range pending {
			abusers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					f, ok := l.answer(l.ask(wire.Header{}, body))
					switch {
					case !ok || f.Type != wire.Error:
						t.Errorf("a refused open was answered %v, %v", f.Type, ok)
						return
					case decode[refusal](t, f).Code == "scope_ended":
						refused.Add(1)
					default:
						busy.Add(1)
					}
				}
			})
		}
	}
	succeeded, codes := 0, map[string]int{}
	for range wanted {
		r, no := good.open(w.scoped(idEcho, "s", 1))
		if no != nil {
			codes[no.Code]++
			continue
		}
		succeeded++
		good.send(wire.Header{Type: wire.Goodbye, Channel: r.Channel, Epoch: r.Epoch}, nil)
	}
	close(stop)
	abusers.Wait()
	t.Logf("%d of %d good opens succeeded beside %d refused and %d turned away; the others: %v", succeeded, wanted, refused.Load(), busy.Load(), codes)
	require.Positive(t, refused.Load())
	require.GreaterOrEqual(t, succeeded, wanted*99/100)
	good.close()
	w.noRoutes(admin, idEcho)
}
