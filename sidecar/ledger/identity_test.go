package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"scopeward/table"
)

// processes is how many processes have to agree (ADR-0134, decision 12).
const processes = 100

const (
	envSeed = "SCOPEWARD_LEDGER_SEED"
	envPath = "SCOPEWARD_LEDGER_PATH"
)

// Every process has a map seed of its own, takes the sets in an order of its own,
// and copies and reloads them: each digest and the prefix are the same.
func TestIdentityIsOneAcrossProcesses(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	said := make([]string, processes)
	var g errgroup.Group
	g.SetLimit(4)
	for seed := range processes {
		g.Go(func() error {
			c := exec.CommandContext(t.Context(), exe)
			c.Env = append(os.Environ(), envChild+"=identity", envSeed+"="+strconv.Itoa(seed),
				envPath+"="+filepath.Join(dir, strconv.Itoa(seed)))
			c.Stderr = os.Stderr
			out, err := c.Output()
			said[seed] = string(out)
			return err
		})
	}
	require.NoError(t, g.Wait())
	require.Len(t, strings.Fields(said[0]), 6+1, "six records and a prefix")
	for seed, s := range said {
		require.Equal(t, said[0], s, "seed %d", seed)
	}
}

// identityChild writes a log in the order of its seed and prints each record's
// digest and the last prefix.
func identityChild() int {
	seed, err := strconv.ParseUint(os.Getenv(envSeed), 10, 64)
	if err == nil {
		err = identify(seed, os.Getenv(envPath))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func identify(seed uint64, path string) error {
	rnd := rand.New(rand.NewPCG(seed, 1))
	// The last two are copies: the same sets in two other orders, after a reload.
	for round := range 3 {
		if err := write(path, rnd, round); err != nil {
			return err
		}
	}
	v, err := OpenView(path)
	if err != nil {
		return err
	}
	defer v.Close()
	r, err := v.Verify()
	if err != nil || !r.Sound() {
		return fmt.Errorf("unsound: %v %v", err, r.Listed)
	}
	if err := v.Entries(func(e *Entry) error {
		fmt.Println(e.RecordSHA256)
		return nil
	}); err != nil {
		return err
	}
	fmt.Println(r.Prefix)
	return nil
}

// write opens the ledger and syncs the same scopes to a new table, their sets in
// an order of its own. The second round goes by way of the first one's rendering.
func write(path string, rnd *rand.Rand, round int) error {
	l, err := Open(Params{Path: path, Log: zap.NewNop(), Now: func() int64 { return began }})
	if err != nil {
		return err
	}
	var records []string
	for i := range 6 {
		raw := shuffled(rnd, i)
		if round == 1 {
			rec, _, err := table.DecodeRecorded([]byte(raw))
			if err != nil {
				return err
			}
			raw = string(rec.Canonical(nil))
		}
		records = append(records, raw)
	}
	if _, refused := send(newTable(l), "core", syncBody(1, records...), began); refused != nil {
		return fmt.Errorf("%s: %s", refused.Code, refused.Message)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return l.Close(ctx)
}

// shuffled is record i with every set, and every object's members, in a random
// order. A map's own order adds the process's seed to it.
func shuffled(rnd *rand.Rand, i int) string {
	ids := map[string]struct{}{}
	for n := range 5 + i {
		ids[fmt.Sprintf("module-%d", n)] = struct{}{}
	}
	list := func(render func(id string) string) string {
		var out []string
		for id := range ids {
			out = append(out, render(id))
		}
		out = append(out, out[rnd.IntN(len(out))]) // a repeat is the same element
		rnd.Shuffle(len(out), func(a, b int) { out[a], out[b] = out[b], out[a] })
		return "[" + strings.Join(out, ",") + "]"
	}
	principal := func(id string) string { return fmt.Sprintf(`{"kind":"reserved","module_id":%q}`, id) }
	members := []string{
		fmt.Sprintf(`"ref":"ref-%d"`, i), `"scope_epoch":3`, `"kind":"head"`,
		`"child_owners":` + list(principal),
		`"carriers":` + list(func(id string) string {
			if id == "module-0" {
				return fmt.Sprintf(`{"principal":%s}`, principal(id))
			}
			return fmt.Sprintf(`{"principal":%s,"targets":%s}`, principal(id), list(strconv.Quote))
		}),
		`"attributes":{"agent_id":"g","delegates":true}`,
	}
	rnd.Shuffle(len(members), func(a, b int) { members[a], members[b] = members[b], members[a] })
	return "{" + strings.Join(members, ",") + "}"
}
