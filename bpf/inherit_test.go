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
	fd, ok := dupOf(f) // a file owns its descriptor
	require.True(t, ok)
	named := os.NewFile(uintptr(fd), filePrefix+"map-ports")
	defer named.Close()
	require.Nil(t, adopt([]*os.File{named}))
}

func TestProcfs_HasNothingToHandOver(t *testing.T) {
	files, err := newTestProcfs(t).Files()
	require.NoError(t, err)
	require.Empty(t, files)
}

// A configuration that names another group is not served by the old one's
// programs.
func TestInherited_AnotherGroupIsAttachedAnew(t *testing.T) {
	needHooks(t)
	h, err := readHierarchy()
	require.NoError(t, err)
	if h.path == "" {
		t.Skip("no cgroup2 is mounted")
	}
	group, err := os.MkdirTemp(h.path, "scopeward-test")
	if err != nil {
		t.Skip("groups can't be made here")
	}
	t.Cleanup(func() { os.Remove(group) })
	first := newTestAttributor(t, Params{})
	store, err := first.Files()
	require.NoError(t, err)
	defer closeAll(store)
	second := newTestAttributor(t, Params{Inherited: store, CgroupPath: group})
	require.Contains(t, second.Status().Why, "attached to "+group)
	third := newTestAttributor(t, Params{Inherited: store, CgroupPath: h.path})
	require.Contains(t, third.Status().Why, "adopted")
}
