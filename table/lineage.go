package table

// lineage walks parent links upwards and remembers where each walk led, so that
// a call's links cost one visit a record however deep they are. Only a link that
// names its parent's live epoch joins anything, whatever the link's state.
type lineage struct {
	lookup func(Key) *Record
	open   map[*Record]ancestry // walks that come to an end
	loops  map[*Record]ancestry // walks that run into a loop
	member map[*Record]int      // the loop that a record is itself part of
	last   int                  // the last loop's number
}

// ancestry is where the walk from a record's parent leads.
type ancestry struct {
	loop int // the loop that it runs into, 0 for none
	// dangling is the key that the last link names without joining it, zero for
	// a root without a parent.
	dangling Key
}

func newLineage(lookup func(Key) *Record) *lineage {
	l := &lineage{lookup: lookup, open: map[*Record]ancestry{}}
	l.forgetLoops()
	return l
}

func (l *lineage) forget() {
	clear(l.open)
	l.forgetLoops()
}

func (l *lineage) forgetLoops() {
	l.loops, l.member = map[*Record]ancestry{}, map[*Record]int{}
}

// closes says whether rec, live under k, is its own ancestor: it is part of a
// loop, or the walk ends at a link that names k, if at another epoch.
func (l *lineage) closes(k Key, rec *Record) bool {
	a := l.walk(rec)
	return l.member[rec] != 0 || a.loop == 0 && a.dangling == k
}

// looped says whether rec was found to be part of a loop.
func (l *lineage) looped(rec *Record) bool { return l.member[rec] != 0 }

// walk follows rec's parents.
func (l *lineage) walk(rec *Record) ancestry {
	if known, found := l.known(rec); found {
		return known
	}
	at := map[*Record]int{}
	var path []*Record
	var a ancestry
	for {
		if known, found := l.known(rec); found {
			a = known
			break
		}
		if start, again := at[rec]; again {
			l.last++
			a = ancestry{loop: l.last}
			for _, member := range path[start:] {
				l.member[member] = l.last
			}
			break
		}
		at[rec] = len(path)
		path = append(path, rec)
		if rec.Parent == nil {
			break
		}
		up := l.lookup(rec.Parent.Key)
		if up == nil || up.Epoch != rec.Parent.Epoch {
			a = ancestry{dangling: rec.Parent.Key}
			break
		}
		rec = up
	}
	for _, r := range path {
		if a.loop != 0 {
			l.loops[r] = a
		} else {
			l.open[r] = a
		}
	}
	return a
}

func (l *lineage) known(rec *Record) (ancestry, bool) {
	if a, found := l.open[rec]; found {
		return a, true
	}
	a, found := l.loops[rec]
	return a, found
}
