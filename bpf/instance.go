package bpf

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ticksPerSecond is USER_HZ: the unit of start times in /proc, 100 on every
// architecture that we build for.
const ticksPerSecond = 100

// nsPerTick is the resolution of a start time.
const nsPerTick = 1_000_000_000 / ticksPerSecond

// Instance is one life of a PID. PIDs are given out again; a PID together with
// its start time is not, but for two lives within one clock tick (10 ms).
type Instance struct {
	PID   int
	Start uint64 // clock ticks since boot, field 22 of /proc/PID/stat
}

// InstanceOf is the present life of pid. A process that has ended and was not
// yet waited for counts as ended. The error is [ErrStale] when there is none.
func InstanceOf(pid int) (Instance, error) {
	st, err := readStat(pid)
	if err != nil {
		return Instance{}, err
	}
	return Instance{PID: pid, Start: st.start}, nil
}

// Alive reports whether the PID still means this life.
func (i Instance) Alive() bool {
	st, err := readStat(i.PID)
	return err == nil && st.start == i.Start
}

// stat is what we use of /proc/PID/stat.
type stat struct {
	ppid  int
	start uint64 // clock ticks since boot
}

func readStat(pid int) (stat, error) {
	if pid <= 0 {
		return stat{}, ErrStale
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, fmt.Errorf("%w: pid %d", ErrStale, pid)
	}
	st, state, ok := parseStat(b)
	if !ok || state == 'Z' || state == 'X' {
		return stat{}, fmt.Errorf("%w: pid %d", ErrStale, pid)
	}
	return st, nil
}

// parseStat reads a line of /proc/PID/stat. The second field is a name that the
// process chose and may hold spaces and parentheses: fields are counted from the
// last one that closes.
func parseStat(b []byte) (st stat, state byte, ok bool) {
	const ( // the manual counts from 1, and the third is our first
		fieldState = 0
		fieldPPID  = 1
		fieldStart = 19
	)
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return stat{}, 0, false
	}
	f := bytes.Fields(b[end+1:])
	if len(f) <= fieldStart || len(f[fieldState]) != 1 {
		return stat{}, 0, false
	}
	ppid, err := strconv.Atoi(string(f[fieldPPID]))
	if err != nil || ppid < 0 {
		return stat{}, 0, false
	}
	start, err := strconv.ParseUint(string(f[fieldStart]), 10, 64)
	if err != nil {
		return stat{}, 0, false
	}
	return stat{ppid: ppid, start: start}, f[fieldState][0], true
}
