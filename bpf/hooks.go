package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// hooks are the loaded programs: what is held of them is their links and maps.
type hooks struct {
	ports, connects, tuples, accepted, ring, counters *ebpf.Map

	links [len(attachments)]link.Link
	where string // the group they are attached to
}

// attachments are the programs and where they go, in the order in which they are
// attached: the carrier first, so that nothing is noted that can't be carried.
var attachments = [...]struct {
	program string
	attach  ebpf.AttachType
}{
	{attributeProgCarry, ebpf.AttachCGroupSockOps},
	{attributeProgNoteRelease, ebpf.AttachCgroupInetSockRelease},
	{attributeProgNoteConnect4, ebpf.AttachCGroupInet4Connect},
	{attributeProgNoteConnect6, ebpf.AttachCGroupInet6Connect},
}

// maps names every map, in one order everywhere.
func (h *hooks) maps() []namedMap {
	return []namedMap{
		{attributeMapPorts, &h.ports},
		{attributeMapConnects, &h.connects},
		{attributeMapTuples, &h.tuples},
		{attributeMapAccepted, &h.accepted},
		{attributeMapBypass, &h.ring},
		{attributeMapCounters, &h.counters},
	}
}

type namedMap struct {
	name string
	m    **ebpf.Map
}

// loadHooks loads and attaches the programs. room overrides the size of the hash
// maps, 0 keeps it.
func loadHooks(cgroup string, room uint32) (*hooks, error) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return nil, noProc(err)
	}
	if err := initialNamespaces(); err != nil {
		return nil, err
	}
	dir, err := openCgroup(cgroup)
	if err != nil {
		return nil, err
	}
	defer dir.Close()

	spec, err := loadAttribute()
	if err != nil {
		return nil, err
	}
	if room != 0 {
		for _, name := range []string{attributeMapConnects, attributeMapTuples, attributeMapAccepted} {
			spec.Maps[name].MaxEntries = room
		}
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, explain("the programs can't be loaded", err)
	}
	defer coll.Close() // what is kept is taken out of it

	h := &hooks{where: dir.Name()}
	for _, m := range h.maps() {
		*m.m = coll.DetachMap(m.name)
	}
	for i, at := range attachments {
		h.links[i], err = link.AttachCgroup(link.CgroupOptions{
			Path:    fmt.Sprintf("/proc/self/fd/%d", dir.Fd()),
			Attach:  at.attach,
			Program: coll.Programs[at.program],
		})
		if err != nil {
			h.close()
			return nil, explain("the programs can't be attached to "+dir.Name(), err)
		}
	}
	return h, nil
}

// initialNamespaces refuses where the kernel's numbers are not ours. Programs
// see PIDs of the initial namespace and an unshifted boot clock.
func initialNamespaces() error {
	for _, ns := range []struct{ file, initial, what string }{
		{"pid", "pid:[4026531836]", "PID"},
		{"time", "time:[4026531834]", "time"},
	} {
		got, err := os.Readlink("/proc/self/ns/" + ns.file)
		if err == nil && got != ns.initial {
			return &NotSupportedError{
				Reason: "we run in a " + ns.what + " namespace of our own, and the hooks count as the host does",
				Remedy: "run in the host's " + ns.what + " namespace",
			}
		}
	}
	return nil
}

// explain turns the kernel's refusal into a [NotSupportedError], and leaves alone
// what is a fault of ours or of the moment.
func explain(what string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES) && !isVerifier(err):
		remedy := "a seccomp filter or a security module refuses bpf(2): allow it"
		if missing := missingCaps(); missing != "" {
			remedy = "grant " + missing
		}
		return &NotSupportedError{Reason: what, Remedy: remedy, Err: err}
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.ENOSYS),
		errors.Is(err, unix.EINVAL), isVerifier(err):
		return &NotSupportedError{
			Reason: what + " on kernel " + kernelRelease(),
			Remedy: "run kernel 5.15 or later with CONFIG_CGROUP_BPF and CONFIG_BPF_SYSCALL",
			Err:    err,
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}

func isVerifier(err error) bool {
	var v *ebpf.VerifierError
	return errors.As(err, &v)
}

// lookup takes the record of an accepted socket out of the kernel. There is one
// record for one connection: asking again finds none.
func (h *hooks) lookup(cookie uint64) (origin, string) {
	if cookie == 0 {
		return origin{}, "the connection has no socket cookie"
	}
	var raw [originLen]byte
	err := h.accepted.LookupAndDelete(cookie, &raw)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		if n := h.counts().lost(); n != 0 {
			return origin{}, fmt.Sprintf("the hooks have no record of this connect (a full map lost %d so far)", n)
		}
		return origin{}, "the hooks have no record of this connect"
	}
	if err != nil {
		return origin{}, "the hooks' record can't be read: " + err.Error()
	}
	o, ok := decodeOrigin(raw[:])
	if !ok || o.tgid == 0 {
		return origin{}, "the hooks' record is not readable"
	}
	return o, ""
}

// Counts are the losses that full maps caused. Each one is a connection that is
// unknown, but for Bypasses, which were not listed.
type Counts struct {
	Connects uint64 // callers not noted
	Tuples   uint64 // callers not carried past the SYN
	Accepted uint64 // callers not carried to the accepted socket
	Bypasses uint64 // connections to the router not told about
}

func (c Counts) lost() uint64 { return c.Connects + c.Tuples + c.Accepted }

func (h *hooks) counts() Counts {
	var n [4]uint64
	for i := range n {
		_ = h.counters.Lookup(uint32(i), &n[i]) // an array's elements are always there
	}
	return Counts{Connects: n[0], Tuples: n[1], Accepted: n[2], Bypasses: n[3]}
}

// setPorts makes exactly ports those of a role. New ones come before old ones
// go, so that a port that stays is never without its role.
func (h *hooks) setPorts(role Role, ports []uint16) error {
	want := make(map[uint16]bool, len(ports))
	for _, p := range ports {
		want[p] = true
		if err := h.ports.Put(p, uint8(role)); err != nil {
			return fmt.Errorf("port %d: %w", p, err)
		}
	}
	var port uint16
	var has uint8
	var stale []uint16
	for it := h.ports.Iterate(); it.Next(&port, &has); {
		if Role(has) == role && !want[port] {
			stale = append(stale, port)
		}
	}
	for _, p := range stale {
		if err := h.ports.Delete(p); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("port %d: %w", p, err)
		}
	}
	return nil
}

// maxAgeNS bounds how long a record waits for its next step: longer than the
// kernel retries a SYN.
const maxAgeNS = 300 * 1_000_000_000

// sweep deletes records that no close took along: failed connects of multi-path
// sockets, for which no release hook runs, and sockets whose callbacks another
// program turned off.
func (h *hooks) sweep(now uint64) int {
	n := 0
	for _, m := range []*ebpf.Map{h.connects, h.tuples, h.accepted} {
		key := make([]byte, m.KeySize())
		var raw [originLen]byte
		var old [][]byte
		for it := m.Iterate(); it.Next(&key, &raw); {
			if at := binary.NativeEndian.Uint64(raw[8:]); now > at && now-at > maxAgeNS {
				old = append(old, append([]byte(nil), key...))
			}
		}
		for _, k := range old {
			if m.Delete(k) == nil {
				n++
			}
		}
	}
	return n
}

// detached names a program that is attached no more, "" when all are. A link
// whose program was detached, or whose group is gone, has no group.
func (h *hooks) detached() string {
	for i, l := range h.links {
		info, err := l.Info()
		if err != nil {
			continue // a kernel that can't say; the connect will
		}
		if cg := info.Cgroup(); cg != nil && cg.CgroupId == 0 {
			return attachments[i].program
		}
	}
	return ""
}

// close detaches, unless somebody else holds the links too.
func (h *hooks) close() error {
	var errs []error
	for _, l := range h.links {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	for _, m := range h.maps() {
		if *m.m != nil {
			errs = append(errs, (*m.m).Close())
		}
	}
	return errors.Join(errs...)
}
