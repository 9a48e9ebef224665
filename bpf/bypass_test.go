package bpf

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestBypass_IsCountedAndListed(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	a := newTestAttributor(t, Params{Log: zap.New(core)})
	own, router := newTestListener(t, "127.0.0.1:0"), newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(own), RoleOwn))
	require.NoError(t, a.SetPort(portOf(router), RoleRouter))
	one, two, friend := newChild(t), newChild(t), newChild(t)
	a.Exclude(mustInstance(t, friend.pid()))

	friend.do(t, "connect v4 %s", router.Addr())
	one.do(t, "connect v4 %s", router.Addr())
	two.do(t, "connect mapped %s", router.Addr())
	one.do(t, "connect mptcp %s", router.Addr())
	one.do(t, "connect v4 %s", own.Addr()) // the way it should go
	fd, err := connectAs("v4", router.Addr().String(), "")
	require.NoError(t, err) // we are always excluded
	defer func() { require.NoError(t, closeFD(fd)) }()
	two.do(t, "connect v4 %s", router.Addr())

	require.Eventually(t, func() bool { n, _ := a.Bypasses(); return n == 4 }, time.Minute, time.Millisecond)
	total, list := a.Bypasses()
	require.EqualValues(t, 4, total)
	require.Len(t, list, 2)
	require.Equal(t, one.pid(), list[0].PID)
	require.Equal(t, two.pid(), list[1].PID, "the latest is last")
	for _, b := range list {
		require.EqualValues(t, 2, b.Count)
		require.Equal(t, 0, b.UID)
		require.Equal(t, mustInstance(t, b.PID).Start, b.Start)
		require.NotEmpty(t, b.Exe)
		require.WithinRange(t, b.Last, time.Now().Add(-time.Minute), time.Now().Add(clockSlack))
	}
	require.Equal(t, 2, logged.Len(), "each process once")
	require.EqualValues(t, 4, a.Status().Bypasses)

	// The router's connections are not ours to attribute.
	require.False(t, mustPeer(t, a, mustAccept(t, router)).Process().Known)
}

func TestBypass_TheRouterComesBackOnAnotherPort(t *testing.T) {
	a := newTestAttributor(t, Params{})
	before, after := newTestListener(t, "127.0.0.1:0"), newTestListener(t, "[::1]:0")
	c := newChild(t)
	require.NoError(t, a.SetPort(portOf(before), RoleRouter))
	require.NoError(t, a.SetPort(portOf(after), RoleRouter))
	c.do(t, "connect v4 %s", before.Addr())
	c.do(t, "connect v6 %s", after.Addr())
	require.Eventually(t, func() bool { n, _ := a.Bypasses(); return n == 1 }, time.Minute, time.Millisecond)
	c.do(t, "connect v6 %s", after.Addr())
	require.Eventually(t, func() bool { n, _ := a.Bypasses(); return n == 2 }, time.Minute, time.Millisecond)
}

func TestBypass_AttemptsThatReachNobodyAreNone(t *testing.T) {
	a := newTestAttributor(t, Params{})
	router, gone := newTestListener(t, "127.0.0.1:0"), newTestListener(t, nobodysAddr)
	require.NoError(t, a.SetPorts(RoleRouter, portOf(router), portOf(gone)))
	require.NoError(t, gone.Close())
	c := newChild(t)
	c.start(t, "connect v4 %s", gone.Addr())
	require.True(t, c.out.Scan())
	require.Contains(t, c.out.Text(), "refused")
	c.do(t, "connect v4 %s", router.Addr()) // events keep their order
	require.Eventually(t, func() bool { n, _ := a.Bypasses(); return n > 0 }, time.Minute, time.Millisecond)
	n, _ := a.Bypasses()
	require.EqualValues(t, 1, n)
}

// A caller whom the hooks did not see is counted as nobody.
func TestBypass_UnseenCallersAreListedAsPIDZero(t *testing.T) {
	a := newTestAttributor(t, Params{})
	router := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(router), RoleRouter))
	require.NoError(t, a.hooks.links[2].Detach()) // note_connect4
	newChild(t).do(t, "connect v4 %s", router.Addr())
	require.Eventually(t, func() bool { n, _ := a.Bypasses(); return n == 1 }, time.Minute, time.Millisecond)
	_, list := a.Bypasses()
	require.Len(t, list, 1)
	require.Zero(t, list[0].PID)
	require.Equal(t, -1, list[0].UID)
}

func TestBypass_TheListIsBounded(t *testing.T) {
	const free = 1 << 23 // above every pid_max
	var b bypasses
	for i := range 3 * maxBypasses {
		_, first := b.note(origin{tgid: uint32(free + i), at: bootNow()})
		require.True(t, first)
	}
	total, list := b.snapshot()
	require.EqualValues(t, 3*maxBypasses, total)
	require.Len(t, list, maxBypasses)
	require.Equal(t, free+2*maxBypasses, list[0].PID)
	require.Equal(t, free+3*maxBypasses-1, list[maxBypasses-1].PID)
	require.Zero(t, list[0].Start, "it can't be looked at any more")
}

func TestBypass_AnExcludedPIDIsExcludedForOneLife(t *testing.T) {
	c := newChild(t)
	id := mustInstance(t, c.pid())
	var b bypasses
	b.exclude([]Instance{{PID: id.PID, Start: id.Start - 1}})
	_, first := b.note(origin{tgid: uint32(id.PID), at: bootNow()})
	require.True(t, first)
	b.exclude([]Instance{id})
	_, first = b.note(origin{tgid: uint32(id.PID), at: bootNow()})
	require.False(t, first)
	total, _ := b.snapshot()
	require.EqualValues(t, 1, total)
}

func TestNamesInLogsAreQuotedAndCut(t *testing.T) {
	require.Equal(t, `"/bin/\nfake line"`, quoted("/bin/\nfake line"))
	require.LessOrEqual(t, len(quoted(string(make([]byte, 500)))), 2+4*64)
	require.Equal(t, `"\u202e"`, quoted("\u202e"))
}
