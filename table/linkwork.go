package table

// linkWork is the order in which the new links of one call are judged: by
// request, and again when the record that a link points at was refused.
type linkWork struct {
	s        *staged
	lines    *lineage
	queue    []int
	queued   []bool
	children map[string][]int // of this call, by the ref of a parent of the same owner
	restored bool             // a refusal put an older record back
}

func newLinkWork(s *staged) *linkWork {
	n := len(s.call.entries)
	w := &linkWork{s: s, lines: newLineage(s.recordLocked), queue: make([]int, n), queued: make([]bool, n)}
	for i := range n {
		w.queue[i], w.queued[i] = i, true
	}
	return w
}

func (w *linkWork) next() (int, bool) {
	if len(w.queue) == 0 {
		return 0, false
	}
	i := w.queue[0]
	w.queue = w.queue[1:]
	w.queued[i] = false
	return i, true
}

// reject refuses a record for its parent and queues its children.
func (w *linkWork) reject(i int, why reason) {
	e := &w.s.call.entries[i]
	e.refused, e.link = why, 0
	e.fallBack()
	w.restored = w.restored || e.next != nil
	if w.children == nil {
		w.indexChildren()
	}
	for _, child := range w.children[e.record.Ref] {
		if !w.queued[child] {
			w.queue, w.queued[child] = append(w.queue, child), true
		}
	}
}

func (w *linkWork) indexChildren() {
	w.children = map[string][]int{}
	for i := range w.s.call.entries {
		if p := w.s.call.entries[i].record.Parent; p != nil && p.Owner == w.s.owner.principal {
			w.children[p.Ref] = append(w.children[p.Ref], i)
		}
	}
}

// firstCycle is the first record from on whose new link makes it its own ancestor.
func (w *linkWork) firstCycle(from int) (int, bool) {
	for i := from; i < len(w.s.call.entries); i++ {
		e := &w.s.call.entries[i]
		if e.link == Linked && w.lines.closes(Key{w.s.owner.principal, e.record.Ref}, e.record) {
			return i, true
		}
	}
	return 0, false
}
