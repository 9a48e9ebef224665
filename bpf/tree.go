package bpf

// maxDepth bounds a walk towards init. Deeper than that nobody nests processes
// but to make us walk.
const maxDepth = 256

// Parent is the process that i is a child of. After the death of a parent that
// is init or the nearest subreaper. A process whose parent is outside our PID
// namespace, or the kernel, has none: the zero Instance and no error. The error
// is [ErrStale].
func Parent(i Instance) (Instance, error) {
	// The parent is read between two looks at the child. While the child's parent
	// is the same PID, that PID has not ended, so the start time read in between
	// is the parent's own.
	before, err := readStat(i.PID)
	if err != nil {
		return Instance{}, err
	}
	if before.start != i.Start {
		return Instance{}, ErrStale
	}
	if before.ppid == 0 {
		return Instance{}, nil
	}
	parent, err := readStat(before.ppid)
	if err != nil {
		return Instance{}, err
	}
	after, err := readStat(i.PID)
	if err != nil {
		return Instance{}, err
	}
	if after != before || parent.start > i.Start {
		return Instance{}, ErrStale
	}
	return Instance{PID: before.ppid, Start: parent.start}, nil
}

// SameOrDescendant reports whether p is ancestor itself or was started, over any
// number of generations, below it. Whoever leaves the tree (a daemon whose
// parent has ended belongs to init) is no descendant any more. The error is
// [ErrStale] when a process of the chain ended while we looked; the answer is
// then false, and asking again may give another.
func SameOrDescendant(p, ancestor Instance) (bool, error) {
	if ancestor.PID <= 0 {
		return false, nil
	}
	for range maxDepth {
		if p == ancestor {
			if !p.Alive() {
				return false, ErrStale
			}
			return true, nil
		}
		if p.PID <= 1 || p.Start < ancestor.Start {
			return false, nil
		}
		up, err := Parent(p)
		if err != nil {
			return false, err
		}
		p = up
	}
	return false, nil
}
