package sidecar

import (
	"runtime"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"scopeward/proxy"
)

// schedule fits the process to the relay. The loops read and write without
// telling the runtime's scheduler, so each keeps a processor of the runtime's to
// itself: there must be more of those than loops, or nobody else runs.
// SCHED_BATCH makes a woken loop wait for its waker's time slice and so find
// more to do at once; a kernel that refuses it costs speed and nothing else.
func schedule(log *zap.Logger) {
	if n := proxy.Loops + 2; runtime.GOMAXPROCS(0) < n {
		runtime.GOMAXPROCS(n)
	}
	attr, err := unix.SchedGetAttr(0, 0)
	if err == nil && attr.Policy == unix.SCHED_NORMAL {
		attr.Policy = unix.SCHED_BATCH
		err = unix.SchedSetAttr(0, attr, 0)
	}
	if err != nil {
		log.Debug("batch scheduling is not to be had", zap.Error(err))
	}
}
