package table

// refs finds refs in a list by their place. A short list is searched as it is.
type refs struct {
	list []string
	at   map[string]int
}

// fewRefs is up to how many refs a search is cheaper than a map.
const fewRefs = 8

func newRefs(n int) refs {
	r := refs{list: make([]string, 0, n)}
	if n > fewRefs {
		r.at = make(map[string]int, n)
	}
	return r
}

// add puts ref last. It says whether ref is new: a repeat takes a place too, and
// is found at its first.
func (r *refs) add(ref string) bool {
	_, repeated := r.find(ref)
	if !repeated && r.at != nil {
		r.at[ref] = len(r.list)
	}
	r.list = append(r.list, ref)
	return !repeated
}

func (r *refs) find(ref string) (int, bool) {
	if r.at != nil {
		i, found := r.at[ref]
		return i, found
	}
	for i, s := range r.list {
		if s == ref {
			return i, true
		}
	}
	return 0, false
}
