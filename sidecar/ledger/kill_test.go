package ledger

import (
	"bufio"
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
)

// envKills is how many times the writer is killed; the full count is 500.
const (
	envKills = "SCOPEWARD_LEDGER_KILLS"
	kills    = 60
	lives    = 3 // of one file, in a row
)

// killWithin bounds the random point: the writer is killed so long after it began
// to write, at most. A file is created, grows and is re-read within it.
const killWithin = 60 * time.Millisecond

// A writer that is killed at a random point leaves a ledger that opens and
// verifies, with all that it had been told is durable, and nothing that it did not
// note.
func TestAKilledWriterLosesNothingDurable(t *testing.T) {
	n := kills
	if s := os.Getenv(envKills); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	dir := t.TempDir()
	var g errgroup.Group
	g.SetLimit(2)
	for i := range (n + lives - 1) / lives {
		g.Go(func() error { return killOne(filepath.Join(dir, strconv.Itoa(i)), uint64(i)) })
	}
	require.NoError(t, g.Wait())
}

// killOne kills the writers of one file, one after another.
func killOne(path string, seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, 2))
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	for life := range lives {
		c := exec.Command(exe)
		c.Env = append(os.Environ(), envChild+"=writer", envPath+"="+path, envSeed+"="+strconv.Itoa(life))
		out, err := c.StdoutPipe()
		if err != nil {
			return err
		}
		if err := c.Start(); err != nil {
			return err
		}
		lines := bufio.NewScanner(out)
		var killed *time.Timer
		var noted, durable int
		for lines.Scan() {
			if killed == nil {
				killed = time.AfterFunc(time.Duration(rnd.Int64N(int64(killWithin))), func() { _ = c.Process.Kill() })
			}
			if _, err := fmt.Sscanf(lines.Text(), "%d %d", &noted, &durable); err != nil {
				break // cut in the middle
			}
		}
		if killed == nil {
			_ = c.Process.Kill()
			_ = c.Wait()
			return fmt.Errorf("%s: the writer never wrote", path)
		}
		killed.Stop()
		_ = c.Wait()
		if err := checkKilled(path, life, durable, noted); err != nil {
			return fmt.Errorf("%s, life %d: %w", path, life, err)
		}
	}
	return os.Remove(path)
}

// checkKilled wants the entries of one life to be those of its first calls, at
// least durable of them. A call may have been noted and not yet told.
func checkKilled(path string, life, durable, noted int) error {
	v, err := OpenView(path)
	if err != nil {
		return err
	}
	defer v.Close()
	r, err := v.Verify()
	if err != nil || !r.Sound() {
		return fmt.Errorf("unsound: %v %v", err, r)
	}
	calls := 0
	prefix := fmt.Sprintf("life-%d-", life)
	err = v.Entries(func(e *Entry) error {
		if !strings.HasPrefix(e.ID.Ref, prefix) || e.Ended() {
			return nil
		}
		if want := fmt.Sprintf("%s%d", prefix, calls); e.ID.Ref != want {
			return fmt.Errorf("%s where %s was to be", e.ID.Ref, want)
		}
		calls++
		return nil
	})
	if err == nil && (calls < durable || calls > noted+1) {
		err = fmt.Errorf("%d calls are there, %d were durable and %d noted", calls, durable, noted)
	}
	return err
}

// writerChild notes one call after another, without waiting, and prints after
// each how many were noted and how many of them are durable. It ends by itself.
func writerChild() int {
	l, err := Open(Params{Path: os.Getenv(envPath), Log: zap.NewNop()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	t := newTable(l)
	deadline := time.Now().Add(time.Minute)
	for i := 0; time.Now().Before(deadline); i++ {
		rec := record(fmt.Sprintf("life-%s-%d", os.Getenv(envSeed), i), 1, "x", "y")
		if _, refused := send(t, "core", syncBody(uint64(i+1), rec), began); refused != nil {
			fmt.Fprintln(os.Stderr, refused.Message)
			return 1
		}
		l.mu.Lock()
		durable := l.durable
		l.mu.Unlock()
		fmt.Println(i+1, durable)
	}
	return 0
}
