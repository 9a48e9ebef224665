package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

const (
	// stopFor is how long a stopped party stands still.
	stopFor = 20 * time.Second
	// backLimit is how long everybody may take to be there again.
	backLimit = 45 * time.Second
)

// fault is what happens to a party.
type fault string

const (
	faultKill  fault = "kill -9"
	faultStop  fault = "stop"  // SIGSTOP for stopFor, then SIGCONT
	faultClose fault = "close" // its connection; SIGTERM for the router and the sidecar
)

// partyOpener is the client connection of the carrier's launch.
const partyOpener party = "opener"

// moment is what has just happened when the fault comes.
type moment string

const (
	afterHello  moment = "Hello"  // the party's own, the provider's for router and sidecar; an opener's handshake
	afterOpen   moment = "open"   // was sent
	afterBind   moment = "bind"   // reached the provider
	afterAck    moment = "ack"    // was sent
	afterAnswer moment = "answer" // reached the opener
	afterDrain  moment = "drain"  // the owner's sync that ends the scope was answered
)

// cell is one fault of the matrix.
type cell struct {
	fault fault
	party party
	at    moment
}

func (c cell) String() string { return fmt.Sprintf("%s, %s, after %s", c.fault, c.party, c.at) }

// cells is the whole matrix of 90, or a sample of it by SCOPEWARD_E2E_FAULTS (a
// number, or "all") and SCOPEWARD_E2E_SEED.
func cells(t *testing.T) []cell {
	t.Helper()
	var all []cell
	for _, f := range []fault{faultKill, faultStop, faultClose} {
		for _, p := range []party{partySidecar, partyRouter, partyOwner, party(idProvider), partyOpener} {
			for _, at := range []moment{afterHello, afterOpen, afterBind, afterAck, afterAnswer, afterDrain} {
				all = append(all, cell{f, p, at})
			}
		}
	}
	size, seed := 12, uint64(1)
	switch v := os.Getenv("SCOPEWARD_E2E_FAULTS"); v {
	case "":
	case "all":
		return all
	default:
		n, err := strconv.Atoi(v)
		require.NoError(t, err, "SCOPEWARD_E2E_FAULTS is a number or \"all\"")
		size = min(n, len(all))
	}
	if v := os.Getenv("SCOPEWARD_E2E_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		require.NoError(t, err, "SCOPEWARD_E2E_SEED is a number")
		seed = n
	}
	r := rand.New(rand.NewPCG(seed, 1))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:size]
}

// TestFaults kills, stops or closes one party at one moment of an open. Nothing
// hangs; once it is back, without help but for the start of a daemon that was
// ended, the router's routes are the index's, none outlives its scope, and
// nothing is left over.
func TestFaults(t *testing.T) {
	programs(t)
	for _, c := range cells(t) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			playFault(t, c)
		})
	}
}

func playFault(t *testing.T, c cell) {
	tr := newTroupe(t)
	fresh, after := record("s", 1), record("after", 1)
	tr.sync(record("warm", 1))
	tr.mustOpen("warm")
	tr.sync()
	require.Empty(t, tr.agree("at first"))
	before := tr.mustFootprint()

	opener, pending := tr.opener, tr.advance(c, fresh)
	began := time.Now()
	tr.strike(c)
	tr.release()
	if pending != nil {
		_, answered := opener.answer(pending)
		require.True(t, answered || over(opener), "the open hangs")
	}
	waited := tr.gather(backLimit)
	t.Logf("back %v after the fault, %v of them waited for", time.Since(began).Round(10*time.Millisecond), waited.Round(10*time.Millisecond))

	if c.at == afterDrain {
		tr.sync(after)
	} else {
		tr.sync(after, fresh)
	}
	tr.agree("once everybody is there")
	tr.mustOpen("after")
	require.NotEmpty(t, tr.agree("after an open"))
	tr.sync()
	require.Empty(t, tr.agree("without a scope"))
	f := tr.opener.await(tr.asked("s"))
	require.Equal(t, wire.Error, f.Type, "%s", f.Body)
	require.Equal(t, "scope_not_live", decode[refusal](t, f).Code)
	tr.returned(before)
}

// advance plays an open up to the cell's moment. It returns where the open's
// answer will come while it is under way.
func (tr *troupe) advance(c cell, scope object) <-chan wire.Frame {
	tr.t.Helper()
	if c.at == afterHello {
		tr.reenter(c.party)
		return nil
	}
	tr.sync(scope)
	if c.at == afterAnswer || c.at == afterDrain {
		tr.mustOpen("s")
		if c.at == afterDrain {
			tr.sync()
		}
		return nil
	}
	tr.holding.Store(c.at != afterOpen)
	pending := tr.asked("s")
	if c.at == afterOpen {
		return pending
	}
	bind := tr.kept()
	if c.at == afterAck {
		serve(tr.cast[idProvider].link, bind)
	} else {
		tr.binds <- bind
	}
	return pending
}

// kept is the bind that the provider keeps.
func (tr *troupe) kept() wire.Frame {
	tr.t.Helper()
	select {
	case bind := <-tr.binds:
		return bind
	case <-time.After(patience):
		require.Fail(tr.t, "no bind came")
		return wire.Frame{}
	}
}

// reenter has the party connect once more, and say Hello.
func (tr *troupe) reenter(p party) {
	tr.t.Helper()
	tr.part(p)
	tr.gather(patience)
}

// part closes the party's connection.
func (tr *troupe) part(p party) {
	switch p {
	case partyOpener:
		tr.opener.close()
	case partySidecar, partyRouter:
		p = party(idProvider)
		fallthrough
	default:
		tr.cast[string(p)].again = true
		tr.cast[string(p)].link.close()
	}
}

// strike does to the party what the cell says. When it returns, a daemon that
// was ended has been started again and a stopped party continues.
func (tr *troupe) strike(c cell) {
	tr.t.Helper()
	daemon := c.party == partySidecar || c.party == partyRouter
	switch {
	case c.fault == faultStop:
		pid := tr.victim(c.party)
		require.NoError(tr.t, syscall.Kill(pid, syscall.SIGSTOP))
		<-time.After(stopFor)
		require.NoError(tr.t, syscall.Kill(pid, syscall.SIGCONT))
	case daemon:
		before := tr.links()
		tr.restartParty(c.party, c.fault == faultKill)
		for _, l := range before {
			<-l.ended
		}
	case c.fault == faultKill:
		require.NoError(tr.t, syscall.Kill(tr.victim(c.party), syscall.SIGKILL))
		tr.lost(c.party)
	default:
		tr.part(c.party)
	}
}

// victim is the party's process.
func (tr *troupe) victim(p party) int {
	switch p {
	case partySidecar:
		return tr.sidecar.cmd.Process.Pid
	case partyRouter:
		return tr.router.cmd.Process.Pid
	case partyOpener:
		return tr.cast[idCarrier].launch.PID
	}
	return tr.cast[string(p)].launch.PID
}

// lost waits until a killed module's connections have ended.
func (tr *troupe) lost(p party) {
	id := string(p)
	if p == partyOpener {
		id = idCarrier
		<-tr.opener.ended
	}
	<-tr.cast[id].link.ended
}

// links are everybody's connections.
func (tr *troupe) links() []*link {
	all := []*link{tr.opener}
	for _, p := range tr.cast {
		all = append(all, p.link)
	}
	return all
}
