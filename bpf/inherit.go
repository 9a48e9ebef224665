package bpf

import (
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// filePrefix begins the name of every descriptor that is handed over. Its number
// changes with the programs or the maps' layouts: what another version attached
// is not adopted.
const filePrefix = "scopeward-bpf-1-"

func linkName(i int) string { return filePrefix + "link-" + attachments[i].program }

// Files are duplicates of the descriptors that keep the programs attached and
// their records alive, each under its name: for a service manager's store, and
// then for the next process's Params.Inherited. The caller closes them. With
// [SourceProcfs] there are none.
func (a *Attributor) Files() ([]*os.File, error) {
	if a.hooks == nil {
		return nil, nil
	}
	var files []*os.File
	add := func(fd int, name string) error {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return os.NewSyscallError("dup", err)
		}
		files = append(files, os.NewFile(uintptr(dup), name))
		return nil
	}
	for _, m := range a.hooks.maps() {
		if err := add((*m.m).FD(), filePrefix+"map-"+m.name); err != nil {
			return nil, err
		}
	}
	for i, l := range a.hooks.links {
		held, ok := l.(interface{ FD() int })
		if !ok {
			continue // attached without a link, by a kernel that has none
		}
		if err := add(held.FD(), linkName(i)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// adopt takes over a whole set of inherited descriptors; nil when it is not
// whole or not of this version.
func adopt(files []*os.File) *hooks {
	byName := map[string]*os.File{}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), filePrefix) {
			byName[f.Name()] = f
		}
	}
	if len(byName) == 0 {
		return nil
	}
	spec, err := loadAttribute()
	if err != nil {
		return nil
	}
	h := &hooks{where: "an inherited group"}
	for _, m := range h.maps() {
		fd, ok := dupOf(byName[filePrefix+"map-"+m.name])
		if !ok {
			h.close()
			return nil
		}
		got, err := ebpf.NewMapFromFD(fd)
		if err != nil {
			h.close()
			return nil
		}
		*m.m = got
		if spec.Maps[m.name].Compatible(got) != nil {
			h.close()
			return nil
		}
	}
	for i := range attachments {
		fd, ok := dupOf(byName[linkName(i)])
		if !ok {
			h.close()
			return nil
		}
		if h.links[i], err = link.NewFromFD(fd); err != nil {
			h.close()
			return nil
		}
	}
	return h
}

// dupOf is a descriptor of our own for f.
func dupOf(f *os.File) (int, bool) {
	if f == nil {
		return -1, false
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	return fd, err == nil
}

// attachedTo reports whether the programs are attached to the group that a new
// attach with this path would choose. A group's id is its folder's inode.
func (h *hooks) attachedTo(cgroup string) bool {
	dir, err := openCgroup(cgroup)
	if err != nil {
		return false
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return false
	}
	for _, l := range h.links {
		info, err := l.Info()
		if err != nil {
			return false
		}
		if cg := info.Cgroup(); cg == nil || cg.CgroupId != st.Ino {
			return false
		}
	}
	return true
}
