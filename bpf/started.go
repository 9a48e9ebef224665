package bpf

import (
	"sync"

	"golang.org/x/sys/unix"
)

// startsKept is how many processes' start times are remembered.
const startsKept = 1024

// starts remembers when processes started, by the inode of their pidfd: the file
// system of pidfds (Linux 6.9) never gives a number to two processes. To read the
// time anew costs more than all the rest of an attribution.
type starts struct {
	mu sync.Mutex
	by map[uint64]uint64 // clock ticks since boot
}

// started is when the process of pidfd, which has this PID, started, in clock ticks
// since boot. It may be another's time if the process has ended: ask that
// afterwards.
func (s *starts) started(pid, pidfd int) (uint64, error) {
	if number, ok := lifeNumber(pidfd); ok {
		s.mu.Lock()
		at, known := s.by[number]
		s.mu.Unlock()
		if known {
			return at, nil
		}
	}
	st, err := readStat(pid)
	return st.start, err
}

// remember keeps the start time of a process that was running after it was read.
func (s *starts) remember(pidfd int, at uint64) {
	number, ok := lifeNumber(pidfd)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil || len(s.by) >= startsKept {
		s.by = make(map[uint64]uint64)
	}
	s.by[number] = at
}

// numbered reports whether pidfds of this kernel have a file system of their own.
// Before it they all were one anonymous file.
var numbered = sync.OnceValue(func() bool {
	fd, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.PID_FS_MAGIC
})

// lifeNumber is the number of a pidfd's process that no other process ever has.
func lifeNumber(pidfd int) (uint64, bool) {
	var st unix.Stat_t
	if !numbered() || unix.Fstat(pidfd, &st) != nil {
		return 0, false
	}
	return st.Ino, true
}
