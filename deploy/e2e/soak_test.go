package e2e

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

const (
	soakers       = 10
	soakFor       = 2 * time.Minute        // unless SCOPEWARD_E2E_SOAK says otherwise
	stepEvery     = 8 * time.Millisecond   // of each opener
	changeEvery   = 15 * time.Millisecond  // the owner's changes
	restartEvery  = 23 * time.Second       // a provider is killed or restarted
	lookEvery     = 100 * time.Millisecond // at the table's invariants, under load
	checkEvery    = 10 * time.Second       // everything stands still and is compared
	answeredAfter = 3 * time.Second        // a call that is not answered by then never is
	lostOf        = 2000                   // at most one route of so many is lost to the router's race
	residentSlack = 12 << 20               // bytes
)

// soak is the world of the soak.
type soak struct {
	*troupe
	told    chronicle
	calm    atomic.Int64 // how often the providers came to rest; odd: one restarts
	dialing sync.Mutex
	soakers []*soaker
	owner   sync.Mutex // held while a change is under way
	changes int
	looks   atomic.Int64 // at the table's invariants
	samples []sample
}

// TestSoak plays openers that come and go, an owner that changes its scopes all
// the time and providers that restart. A model knows the outcome of every open,
// and at intervals the index, the router and the model are compared.
func TestSoak(t *testing.T) {
	programs(t)
	length := soakFor
	if v := os.Getenv("SCOPEWARD_E2E_SOAK"); v != "" {
		var err error
		length, err = time.ParseDuration(v)
		require.NoError(t, err, "SCOPEWARD_E2E_SOAK is a duration")
	}
	s := newSoak(t)
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	fail := func(err error) {
		t.Error(err)
		cancel()
	}
	for _, k := range s.soakers {
		running.Go(func() {
			for tick := time.Tick(stepEvery); ctx.Err() == nil; <-tick {
				if err := k.step(); err != nil {
					fail(err)
				}
			}
		})
	}
	running.Go(func() { s.change(ctx, fail) })
	running.Go(func() { s.stir(ctx, fail) })
	running.Go(func() { s.watch(ctx, fail) })
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for ctx.Err() == nil {
		select {
		case <-check.C:
			s.check()
		case <-ctx.Done():
		}
		if t.Failed() {
			cancel()
		}
	}
	running.Wait()
	if t.Failed() {
		return
	}
	s.check()
	s.report(length)
	s.flat()
}

func newSoak(t *testing.T) *soak {
	s := &soak{}
	s.troupe = newTroupe(t, func(w *world) {
		w.modules[idEcho] = module{program: progEcho}
		w.modules[idOld] = module{program: progOldModule}
		w.watched = watched(t)
		w.configure()
	})
	s.waitModules(patience)
	seed := uint64(1)
	s.told.pictures = []picture{{}}
	for i := range soakers {
		k := &soaker{
			soak: s, as: "direct", r: rand.New(rand.NewPCG(seed, uint64(i))),
			routes: map[route]*opened{}, counts: map[string]int{},
		}
		if i%2 == 1 {
			k.as = idCarrier
		}
		require.NoError(t, k.connect())
		t.Cleanup(func() { k.link.close() })
		s.soakers = append(s.soakers, k)
	}
	s.sync()
	return s
}

// dial opens a connection for a soaker.
func (s *soak) dial(as string) net.Conn {
	s.dialing.Lock()
	defer s.dialing.Unlock()
	if as != "direct" {
		return s.hand(s.cast[idCarrier].launch)
	}
	conn, err := dialFile(s.frontFile())
	if err != nil {
		return nil
	}
	return conn
}

// change is the owner: one change after the other, by sync and by apply.
func (s *soak) change(ctx context.Context, fail func(error)) {
	r := rand.New(rand.NewPCG(1, 99))
	tick := time.NewTicker(changeEvery)
	defer tick.Stop()
	owner := s.cast[idOwner].link
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s.owner.Lock()
		next, i := s.told.last().turned(r)
		s.generation++
		body := object{"op": wire.OpScopeSync, "generation": s.generation, "scopes": next.records()}
		if next[i].live && r.IntN(2) == 0 {
			body = object{"op": wire.OpScopeApply, "generation": s.generation, "upsert": []object{next[i].record(i)}, "end": []object{}}
		}
		s.told.send(next)
		f, ok := owner.answer(owner.ask(wire.Header{}, wire.MustMarshal(body)))
		s.told.answered()
		s.changes++
		s.owner.Unlock()
		if !ok || f.Type != wire.Response || bytes.Contains(f.Body, []byte(`"refused"`)) {
			fail(wrongf("a change was answered %v %s", f.Type, f.Body))
			return
		}
	}
}

// stir kills or restarts a provider now and then, and waits until it is back.
func (s *soak) stir(ctx context.Context, fail func(error)) {
	tick := time.NewTicker(restartEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s.owner.Lock() // a checkpoint holds it: none sees a restart half done
		s.calm.Add(1)
		id := []string{idEcho, idOld}[n%2]
		if err := s.bounce(id, n%4 < 2); err != nil {
			fail(err)
		}
		s.calm.Add(1)
		s.owner.Unlock()
	}
}

// bounce restarts a provider and waits until it answers again.
func (s *soak) bounce(id string, kill bool) error {
	conn, err := dialFile(s.routerFile())
	if err != nil {
		return err
	}
	defer conn.Close()
	old := s.livePID(conn, id)
	if kill {
		syscall.Kill(old, syscall.SIGKILL)
	} else {
		exchange(conn, wire.Header{Corr: 9}, wire.MustMarshal(object{"op": wire.OpSupervisorRestart, "module_id": id}))
	}
	front, err := dialFile(s.frontFile())
	if err != nil {
		return err
	}
	defer front.Close()
	limit := time.After(2 * patience)
	for tick := time.Tick(50 * time.Millisecond); ; {
		pid := s.livePID(conn, id)
		f, err := exchange(front, wire.Header{Corr: 7}, wire.MustMarshal(s.opening(id)))
		if err == nil && f.Type == wire.Response && pid != 0 && pid != old {
			return nil
		}
		select {
		case <-tick:
		case <-limit:
			return wrongf("%s did not come back: %s, %v", id, f.Body, err)
		}
	}
}

// stirred reports whether a provider restarts, or did since calm was read, or
// has only just come back.
func (s *soak) stirred(calm int64) bool {
	now := s.calm.Load()
	return now%2 == 1 || now != calm
}

func (s *soak) later() <-chan time.Time { return time.After(answeredAfter) }
