package bpf

import (
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// maxBypasses bounds the list; the total has no bound.
const maxBypasses = 100

// Bypass is a process that connected straight to the router.
type Bypass struct {
	PID   int    // 0: the hooks did not see who it was
	UID   int    // -1 with PID 0
	Start uint64 // clock ticks since boot; 0: it ended before we looked
	Exe   string // chosen by the process; "" when it ended before we looked
	Last  time.Time
	Count uint64 // connections that reached the router's port
}

// bypasses counts and lists them, newest last.
type bypasses struct {
	mu       sync.Mutex
	excluded []Instance
	list     []Bypass
	total    uint64
}

func (b *bypasses) exclude(ids []Instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.excluded = slices.Clone(ids)
}

// note takes one event of the ring. It says whether the process is new to the
// list, and as what.
func (b *bypasses) note(o origin) (Bypass, bool) {
	seen := Bypass{PID: int(o.tgid), UID: int(o.uid), Last: wallTime(o.at), Count: 1}
	if o.tgid == 0 {
		seen.UID = -1
	}
	exe, _ := os.Readlink("/proc/" + strconv.Itoa(seen.PID) + "/exe") //nolint:errcheck // "" is an answer
	if st, err := readStat(seen.PID); err == nil && st.start*nsPerTick <= o.at {
		seen.Start, seen.Exe = st.start, exe
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.excluded {
		if x.PID == seen.PID && (seen.Start == 0 || seen.Start == x.Start) {
			return Bypass{}, false
		}
	}
	b.total++
	for i, old := range b.list {
		if old.PID != seen.PID || (seen.Start != 0 && old.Start != 0 && seen.Start != old.Start) {
			continue
		}
		old.Count++
		old.Last = seen.Last
		if seen.Start != 0 {
			old.Start, old.Exe = seen.Start, seen.Exe
		}
		b.list = append(slices.Delete(b.list, i, i+1), old)
		return old, false
	}
	if len(b.list) == maxBypasses {
		b.list = slices.Delete(b.list, 0, 1)
	}
	b.list = append(b.list, seen)
	return seen, true
}

func (b *bypasses) snapshot() (uint64, []Bypass) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total, slices.Clone(b.list)
}
