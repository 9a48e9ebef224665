package bpf

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// A connection that is made while nobody of us runs is attributed to the one who
// made it by the one who comes next.
func TestInherited_ProgramsGoOnWithoutAGap(t *testing.T) {
	needHooks(t)
	first, err := Open(Params{})
	require.NoError(t, err)
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, first.SetPort(portOf(l), RoleOwn))
	store, err := first.Files()
	require.NoError(t, err)
	defer closeAll(store)
	require.Len(t, store, 10)
	require.NoError(t, first.Close())

	c := newChild(t)
	c.do(t, "connect v4 %s", l.Addr())
	second := newTestAttributor(t, Params{Inherited: store})
	require.Contains(t, second.Status().Why, "adopted")
	require.Equal(t, c.pid(), mustKnow(t, second, mustAccept(t, l)).PID)
	require.NoError(t, second.SelfProbe(testContext(t)))

	// What the first one said of ports is the second one's to change.
	require.NoError(t, second.SetPorts(RoleOwn))
	require.Zero(t, entries(t, second.hooks.ports))
}

func TestInherited_AnIncompleteSetIsIgnored(t *testing.T) {
	needHooks(t)
	first := newTestAttributor(t, Params{})
	store, err := first.Files()
	require.NoError(t, err)
	defer closeAll(store)
	for i := range store {
		rest := append(append([]*os.File{}, store[:i]...), store[i+1:]...)
		second := newTestAttributor(t, Params{Inherited: rest})
		require.Contains(t, second.Status().Why, "attached to", store[i].Name())
	}
}

func TestInherited_OtherFilesAreIgnored(t *testing.T) {
	f, err := os.Open("/dev/null")
	require.NoError(t, err)
	defer f.Close()
	require.Nil(t, adopt([]*os.File{f}))
	named := os.NewFile(f.Fd(), filePrefix+"map-ports")
	require.Nil(t, adopt([]*os.File{named}))
}

func TestProcfs_HasNothingToHandOver(t *testing.T) {
	files, err := newTestProcfs(t).Files()
	require.NoError(t, err)
	require.Empty(t, files)
}
