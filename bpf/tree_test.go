package bpf

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTree(t *testing.T) {
	l := newTestListener(t, "127.0.0.1:0")
	self := mustInstance(t, os.Getpid())
	c, stranger := newChild(t), newChild(t)
	c.do(t, "connect v4 %s", l.Addr())
	pid, err := strconv.Atoi(c.do(t, "fork"))
	require.NoError(t, err)
	middle, leaf, other := mustInstance(t, c.pid()), mustInstance(t, pid), mustInstance(t, stranger.pid())

	for _, tc := range []struct {
		name        string
		p, ancestor Instance
		want        bool
	}{
		{"itself", leaf, leaf, true},
		{"a child", leaf, middle, true},
		{"a grandchild", leaf, self, true},
		{"a parent is no descendant", middle, leaf, false},
		{"a sibling is none", other, middle, false},
		{"everybody descends from init", leaf, mustInstance(t, 1), true},
		{"an older life of the ancestor's PID", leaf, Instance{PID: middle.PID, Start: middle.Start - 1}, false},
		{"a later life of the ancestor's PID", leaf, Instance{PID: middle.PID, Start: middle.Start + 1000}, false},
		{"unknown is nobody's descendant", Instance{}, middle, false},
		{"nobody descends from unknown", leaf, Instance{}, false},
		{"unknown is not unknown's", Instance{}, Instance{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := SameOrDescendant(tc.p, tc.ancestor)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}

	up, err := Parent(leaf)
	require.NoError(t, err)
	require.Equal(t, middle, up)
	up, err = Parent(mustInstance(t, 1))
	require.NoError(t, err)
	require.Equal(t, Instance{}, up)

	// Another life of a PID has no parent, whatever runs there now.
	_, err = Parent(Instance{PID: leaf.PID, Start: leaf.Start - 1})
	require.ErrorIs(t, err, ErrStale)
	in, err := SameOrDescendant(Instance{PID: leaf.PID, Start: leaf.Start + 1}, middle)
	require.ErrorIs(t, err, ErrStale)
	require.False(t, in)

	// Who outlives its parent belongs to another. The leaf ends with its input.
	require.NoError(t, c.cmd.Process.Kill())
	_ = c.cmd.Wait() // killed
	in, err = SameOrDescendant(leaf, middle)
	require.False(t, in, err)
	require.False(t, middle.Alive())
	_, err = InstanceOf(middle.PID)
	require.ErrorIs(t, err, ErrStale)
	c.in.Close()
	require.Eventually(t, func() bool { return !leaf.Alive() }, time.Minute, time.Millisecond)
	in, err = SameOrDescendant(leaf, leaf)
	require.ErrorIs(t, err, ErrStale)
	require.False(t, in, "the dead are nobody's")
}

func TestAZombieHasEnded(t *testing.T) {
	c := newChild(t)
	id := mustInstance(t, c.pid())
	require.NoError(t, c.cmd.Process.Kill())
	require.Eventually(t, func() bool { return !id.Alive() }, time.Minute, time.Millisecond)
	_, err := os.Stat("/proc/" + strconv.Itoa(id.PID))
	require.NoError(t, err, "it was not waited for")
}
