package sidecar

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"scopeward/proxy/routertest"
)

// Killed in the instant of a Hello's answer we must find the module in the file.
func TestAModuleIsRememberedBeforeItsHelloIsAnswered(t *testing.T) {
	r := newRig(t)
	r.startBoth()
	for i := range 20 {
		id := fmt.Sprintf("m%02d", i)
		m := routertest.DialModule(t, r.front)
		m.Hello(id)
		data, err := os.ReadFile(r.front + healSuffix)
		require.NoError(t, err)
		require.Contains(t, string(data), id)
	}
}

func TestAHelloWaitsForTheFileAndForNothingElse(t *testing.T) {
	h := newHealer(filepath.Join(t.TempDir(), "state"), zap.NewNop())
	told := make(chan string, 8)
	h.expect(1, "m", func() { told <- "first" })
	require.Empty(t, told, "nobody has saved yet")
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { h.run(ctx) })
	require.Equal(t, "first", <-told)
	s, err := readState(h.path)
	require.NoError(t, err)
	require.Equal(t, []string{"m"}, s.Modules)

	h.mu.Lock()
	_, ours := h.ids["m"]
	h.mu.Unlock()
	require.False(t, ours, "a Hello that is not answered makes no module of ours")
	h.expect(2, "m", func() { told <- "second" })
	require.Equal(t, "second", <-told)
	h.closed(1)
	h.closed(2)
	eventually(t, "the file to forget it", func() bool {
		s, err := readState(h.path)
		return err == nil && len(s.Modules) == 0
	})
	h.expect(3, "n", func() { told <- "third" })
	require.Equal(t, "third", <-told)
	h.hold()
	h.closed(3)
	cancel()
	run.Wait()
	h.expect(4, "late", func() { told <- "nobody saves any more" })
	require.Equal(t, "nobody saves any more", <-told)
	s, err = readState(h.path)
	require.NoError(t, err)
	require.Equal(t, []string{"n"}, s.Modules, "our end is not the module's")
}
