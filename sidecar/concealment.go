package sidecar

import (
	"errors"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// conceal keeps this process's memory, and the keys in it, from other processes
// of the same user: it writes no core dump, nobody but root may trace it, and
// its files under /proc are root's. What we read of others under /proc is not
// touched by it.
func conceal() error {
	return errors.Join(
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}),
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
	)
}

// conceal is [conceal] with a word to the operator.
func (s *Sidecar) conceal() {
	if err := conceal(); err != nil {
		s.log.Warn("processes of the same user may read our memory", zap.Error(err))
	}
}
