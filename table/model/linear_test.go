package model_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"scopeward/table"
	"scopeward/table/model"
)

// TestS4_ReserveCommitApplyAndReleaseAreLinearizable runs short histories of
// callers that meet on one scope, and wants each to be explained by some order of
// its calls, taken one after another by the model (sections 4 and 6: the idle
// check and the change, the tag and its drains, are one step).
func TestS4_ReserveCommitApplyAndReleaseAreLinearizable(t *testing.T) {
	histories := 200
	if testing.Short() {
		histories = 100
	}
	met := map[string]int{}
	for i := range histories {
		h := newHistory(rand.New(rand.NewPCG(uint64(i), 4)))
		operations := h.run(5, 9)
		for _, op := range operations {
			answer, _, _ := strings.Cut(op.Output.(string), " ")
			met[answer]++
			for _, other := range operations {
				if op.Call < other.Call && other.Call < op.Return {
					met["overlap"]++
				}
			}
		}
		result, _ := porcupine.CheckOperationsVerbose(sequential, operations, 0) // some take a hundred times as long as most
		if result != porcupine.Ok {
			t.Fatalf("history %d is %s:\n%s", i, result, historyText(operations))
		}
	}
	t.Logf("%d histories: %v", histories, met)
	for _, answer := range []string{"committed", "scope_ended", "scope_changed", "gone", "scope_sync_stale", "updated", "replaced", "scope_epoch_in_use", "true", "false", "overlap"} {
		require.NotZero(t, met[answer], "no history had %s: %v", answer, met)
	}
}

// call is the input of one operation. What it answered is a text.
type call struct {
	op      string // apply, reserve, commit, release, leave
	command command
	route   uint64 // of a reserve: the epoch that it names
	host    int
	hold    bool
}

const provider, authority = 100, 200

// sequential is the model as porcupine asks for it.
var sequential = porcupine.Model{
	Init: func() any {
		m := model.New(model.Limits{LiveScopes: 9, Tombstones: 9}, "core")
		prepareModel(m)
		return m
	},
	Step: func(state, input, output any) (bool, any) {
		m := state.(*model.Model).Copy()
		got := answerOfModel(m, input.(call), output.(string))
		return got == output.(string), m
	},
	Equal: func(a, b any) bool { return stateText(a) == stateText(b) },
	Hash: func(state any) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(stateText(state)))
		return h.Sum64()
	},
	DescribeOperation: func(input, output any) string { return callText(input.(call)) + " -> " + output.(string) },
}

func stateText(state any) string { return state.(*model.Model).Print() }

// The scope that all meet on, and how the owner's calls leave it.
func contended(epoch uint64, agent string, carrier, idle bool) model.Record {
	r := model.Record{Ref: "s", Epoch: epoch, Kind: "head", Attributes: map[string]string{"agent_id": agent}, OnlyIfIdle: idle}
	if carrier {
		r.Carriers = []model.Carrier{{Principal: "direct"}}
	}
	return r
}

var first = command{op: "sync", owner: "core", generation: 1, records: []model.Record{contended(1, "x", true, false)}}

func prepareModel(m *model.Model) {
	for _, peer := range []int{1, 2, 3, provider, authority} {
		m.Join(peer)
	}
	m.Sync(model.Claim{Peer: authority, Owner: "core", Launch: 1, Current: true}, first.generation, first.records, start)
}

// answerOfModel takes a call. The number of an admitted route is the table's.
func answerOfModel(m *model.Model, c call, output string) string {
	switch c.op {
	case "apply":
		claim := model.Claim{Peer: authority, Owner: "core", Launch: 1, Current: true}
		reply, refused := m.Apply(claim, c.command.generation, c.command.records, c.command.ends, start)
		if refused != "" {
			return refused
		}
		words := []string{}
		for _, r := range reply.Results {
			words = append(words, r.Outcome)
		}
		for _, ended := range reply.Ends {
			words = append(words, fmt.Sprint(ended))
		}
		return fmt.Sprint(strings.Join(words, " "), " ", drainText(reply.Drains))
	case "reserve":
		var id uint64
		admitted := false
		_, _ = fmt.Sscanf(output, "%t %d", &admitted, &id)
		o := model.Open{Owner: "core", Ref: "s", Epoch: c.route, Opener: c.host, Provider: provider, Principal: "direct", Module: "tool", Hold: c.hold}
		if !m.Reserve(id, o, start) {
			return "false"
		}
		return fmt.Sprintf("true %d", id)
	case "commit":
		return m.Commit(c.route)
	case "release":
		return fmt.Sprint(m.Release(c.route))
	case "leave":
		return fmt.Sprint("left ", m.Leave(c.host))
	}
	return ""
}

// history is one table with callers on goroutines of their own.
type history struct {
	random *rand.Rand
	real   *table.Table
	clock  atomic.Int64
	gen    atomic.Uint64
	epoch  atomic.Uint64
	last   atomic.Uint64 // route
}

func newHistory(random *rand.Rand) *history {
	h := &history{random: random, real: table.New(table.Config{
		Incarnation: strings.Repeat("a", 32), AuthorityOwners: []string{"core"},
		Limits: table.Limits{LiveScopes: 9, Tombstones: 9},
	})}
	for _, peer := range []int{1, 2, 3, provider, authority} {
		h.real.Join(peerOf(peer))
	}
	sync, _ := table.DecodeSync(first.body())
	h.real.Sync(h.claim(), sync, start)
	h.gen.Store(1)
	h.epoch.Store(1)
	return h
}

func (h *history) claim() table.Claim {
	return table.Claim{Peer: peerOf(authority), Owner: "core", Launch: 1, Current: true}
}

// run lets callers take each calls at once.
func (h *history) run(callers, each int) []porcupine.Operation {
	operations := make([][]porcupine.Operation, callers)
	var wait, ready sync.WaitGroup
	ready.Add(1)
	for i := range callers {
		random := rand.New(rand.NewPCG(h.random.Uint64(), uint64(i)))
		wait.Go(func() {
			var mine []uint64 // admitted, and not yet settled
			ready.Wait()
			for range each {
				c := h.next(random)
				switch {
				case c.op == "commit" && len(mine) > 0:
					c.route, mine = mine[0], mine[1:]
				case c.op == "commit" && random.IntN(4) > 0:
					c = call{op: "reserve", host: 1 + random.IntN(3), route: h.epoch.Load()}
				}
				at := h.clock.Add(1)
				runtime.Gosched() // calls of others begin before this one is made
				output := h.take(c)
				if id, admitted := strings.CutPrefix(output, "true "); admitted && c.op == "reserve" {
					route, _ := strconv.ParseUint(id, 10, 64)
					mine = append(mine, route)
				}
				operations[i] = append(operations[i], porcupine.Operation{
					ClientId: i, Input: c, Call: at, Output: output, Return: h.clock.Add(1),
				})
			}
		})
	}
	ready.Done()
	wait.Wait()
	return slices.Concat(operations...)
}

// next is a call about what is there now, or was a moment ago.
func (h *history) next(random *rand.Rand) call {
	route := h.last.Load()
	route -= min(route, uint64(random.IntN(4)))
	switch n := random.IntN(20); {
	case n < 8:
		return call{op: "reserve", host: 1 + random.IntN(3), hold: random.IntN(3) == 0, route: h.epoch.Load()}
	case n < 14:
		return call{op: "commit", route: route}
	case n < 16:
		return call{op: "release", route: route}
	case n < 17 && random.IntN(3) == 0:
		return call{op: "leave", host: 1 + random.IntN(3)}
	}
	c := command{op: "apply", owner: "core", generation: h.gen.Add(1)}
	if random.IntN(16) == 0 {
		c.generation-- // another's, or the last one
	}
	epoch := h.epoch.Load()
	switch random.IntN(12) {
	case 0:
		c.ends = []model.End{{Ref: "s", Epoch: epoch}}
		h.epoch.Add(1)
	case 1, 2:
		c.records = []model.Record{contended(h.epoch.Add(1), "x", true, random.IntN(2) == 0)}
	case 3:
		c.records = []model.Record{contended(epoch, "x", false, false)}
	default:
		c.records = []model.Record{contended(epoch, []string{"x", "y"}[random.IntN(2)], true, false)}
	}
	return call{op: "apply", command: c}
}

// take makes a call of the table.
func (h *history) take(c call) string {
	switch c.op {
	case "apply":
		apply, _ := table.DecodeApply(c.command.body())
		applied, refused := h.real.Apply(h.claim(), apply, start)
		if refused != nil {
			return string(refused.Code)
		}
		words := []string{}
		for _, r := range applied.Results {
			if r.Outcome == table.Refused {
				words = append(words, string(r.Code))
			} else {
				words = append(words, r.Outcome.String())
			}
		}
		for _, e := range applied.EndResults {
			words = append(words, fmt.Sprint(e.Ended))
		}
		return fmt.Sprint(strings.Join(words, " "), " ", realDrainText(applied.Drains))
	case "reserve":
		r := table.Reservation{
			Scope: table.Key{Owner: table.ReservedPrincipal("core"), Ref: "s"}, Opener: peerOf(c.host),
			Principal: principalOf("direct"), Module: "tool", Provider: peerOf(provider), Hold: c.hold,
		}
		id, _, ok := h.real.Reserve(r, func(s table.State) bool {
			return s.Live != nil && s.Live.ID.Epoch == c.route && s.Live.Record.Permits(r.Principal, r.Module)
		})
		if !ok {
			return "false"
		}
		h.last.Store(uint64(id))
		return fmt.Sprintf("true %d", id)
	case "commit":
		switch v := h.real.Commit(table.RouteID(c.route)); v {
		case table.Committed:
			return "committed"
		case table.Gone:
			return "gone"
		default:
			return string(v.Code())
		}
	case "release":
		return fmt.Sprint(h.real.Release(table.RouteID(c.route)))
	case "leave":
		return fmt.Sprint("left ", h.real.Leave(peerOf(c.host)))
	}
	return ""
}

func callText(c call) string {
	switch c.op {
	case "apply":
		return strings.ReplaceAll(c.command.String(), "\n", ";")
	case "reserve":
		return fmt.Sprintf("reserve core/s@%d host%d hold=%t", c.route, c.host, c.hold)
	case "leave":
		return fmt.Sprintf("leave host%d", c.host)
	}
	return fmt.Sprintf("%s %d", c.op, c.route)
}

func historyText(operations []porcupine.Operation) string {
	slices.SortFunc(operations, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, op := range operations {
		fmt.Fprintf(&b, "%4d-%-4d caller %d: %s -> %s\n", op.Call, op.Return, op.ClientId, callText(op.Input.(call)), op.Output)
	}
	return b.String()
}
