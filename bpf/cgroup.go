package bpf

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// hierarchy is how this host mounts control groups.
type hierarchy struct {
	path string // first cgroup2 mount; "" when there is none
	v1   bool   // version 1 controllers are mounted
}

func (h hierarchy) String() string {
	switch {
	case h.path != "" && h.v1:
		return "hybrid"
	case h.path != "":
		return "unified"
	case h.v1:
		return "version 1 only"
	}
	return "none"
}

// readHierarchy reads /proc/mounts.
func readHierarchy() (hierarchy, error) {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return hierarchy{}, err
	}
	return parseMounts(b), nil
}

func parseMounts(b []byte) hierarchy {
	var h hierarchy
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) < 3 {
			continue
		}
		switch f[2] {
		case "cgroup2":
			if h.path == "" {
				h.path = unescapeMount(f[1])
			}
		case "cgroup":
			h.v1 = true
		}
	}
	return h
}

// unescapeMount undoes the octal escapes of /proc/mounts.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// openCgroup opens the group to attach to. With no path it is the root of the
// mounted hierarchy, or of a mount of our own that no path leads to when only
// version 1 is mounted.
func openCgroup(path string) (*os.File, error) {
	if path == "" {
		h, err := readHierarchy()
		if err != nil {
			return nil, noProc(err)
		}
		if h.path == "" {
			return mountCgroup(h)
		}
		path = h.path
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, &NotSupportedError{
			Reason: fmt.Sprintf("the control group %q can't be opened", path),
			Remedy: "set attribution.cgroup to a folder of the cgroup2 hierarchy, or leave it out",
			Err:    err,
		}
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &fs); err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		dir.Close()
		return nil, &NotSupportedError{
			Reason: fmt.Sprintf("%q is not in a cgroup2 hierarchy", path),
			Remedy: "set attribution.cgroup to a folder of the cgroup2 hierarchy, or leave it out",
			Err:    err,
		}
	}
	return dir, nil
}

// noProc says that /proc is missing: groups are opened and processes are read by
// it, whichever way they are found.
func noProc(err error) error {
	return &NotSupportedError{Reason: "/proc can't be read", Remedy: "mount /proc", Err: err}
}

// mountCgroup makes a detached mount of cgroup2. It is in no mount table and
// goes when its descriptor is closed; links to the group stay.
func mountCgroup(h hierarchy) (*os.File, error) {
	refuse := func(err error) error {
		return &NotSupportedError{
			Reason: "no cgroup2 is mounted (found: " + h.String() + ") and none could be mounted",
			Remedy: "mount one (mount -t cgroup2 none /sys/fs/cgroup/unified), or grant CAP_SYS_ADMIN",
			Err:    err,
		}
	}
	fsfd, err := unix.Fsopen("cgroup2", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, refuse(err)
	}
	defer unix.Close(fsfd)
	if err := unix.FsconfigCreate(fsfd); err != nil {
		return nil, refuse(err)
	}
	fd, err := unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, refuse(err)
	}
	return os.NewFile(uintptr(fd), "private cgroup2"), nil
}
