package table

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A long list of records is read in two goes. The first walks it once, recognizes
// the records that the owner's last set held, and finds where the others end. The
// second decodes those, a few at a time and on every processor.

// groupSize is how many records share their memory. One that stays keeps the others
// of its group in memory, so it is small.
const groupSize = 8

// perDecoder is how many records are worth another goroutine.
const perDecoder = 512

// recordsApart reads the list of records that comes. It gives up, and leaves r
// where it was, when the list is not what it should be: somebody else says why.
func (c *call) recordsApart(r *reader) bool {
	w := walk{scanner: r.scanner, last: c.recall.known()}
	if !w.list() || !decodeAll(w.entries, w.fresh) {
		return false
	}
	r.at = w.at
	c.entries = w.entries
	same := w.inPlace && len(w.entries) == len(w.last.records)
	for _, i := range w.fresh {
		same = same && w.entries[i].record.Ref == w.last.records[i].record.Ref
	}
	if same {
		c.index, c.indexed = w.last.index, true
		c.resent = len(w.fresh) == 0
	}
	return true
}

// walk is the first go.
type walk struct {
	scanner
	last    *recalled
	entries []entry
	fresh   []int // entries that must be decoded; raw is the list's text
	inPlace bool  // what was recognized stands where it stood
}

func (w *walk) list() bool {
	if !w.take('[') {
		return false
	}
	w.inPlace = true
	w.entries = make([]entry, 0, len(w.last.records)+1)
	next := 0       // of last, the record that should come
	missed := false // the one before was not recognized
	for first := true; ; first = false {
		more, err := w.more(']', first)
		if !more {
			return err == nil
		}
		w.space()
		if next < len(w.last.records) && strings.HasPrefix(w.text[w.at:], w.last.records[next].raw) {
			w.recognize(next)
			next, missed = next+1, false
			continue
		}
		start := w.at
		if w.next() != '{' || !w.hop() {
			return false
		}
		raw := w.text[start:w.at]
		if len(w.entries) == 0 { // of a first set, the others are about as long
			w.entries = slices.Grow(w.entries, min(MaxEntries, len(w.text)/len(raw)))
		}
		// One record in another's place is a change. Only the second in a row says
		// that the order is another.
		if missed {
			if i := w.last.find(raw); i >= 0 {
				w.at = start
				w.recognize(i)
				next, missed = i+1, false
				continue
			}
		}
		w.fresh = append(w.fresh, len(w.entries))
		w.entries = append(w.entries, entry{raw: raw})
		next, missed = next+1, true
	}
}

// recognize takes record i of the last set. It is an object, so what begins with it
// is no longer one.
func (w *walk) recognize(i int) {
	known := &w.last.records[i]
	w.inPlace = w.inPlace && i == len(w.entries)
	w.entries = append(w.entries, known.entry())
	w.at += len(known.raw)
}

// decodeAll decodes the entries that fresh names. It is false when one of them is
// malformed.
func decodeAll(entries []entry, fresh []int) bool {
	decoders := min(runtime.NumCPU(), len(fresh)/perDecoder+1)
	var failed atomic.Bool
	var all sync.WaitGroup
	for i := range decoders {
		part := fresh[i*len(fresh)/decoders : (i+1)*len(fresh)/decoders]
		decode := func() {
			for len(part) > 0 && !failed.Load() {
				n := min(groupSize, len(part))
				if !decodeGroup(entries, part[:n]) {
					failed.Store(true)
				}
				part = part[n:]
			}
		}
		if i == decoders-1 {
			decode()
		} else {
			all.Go(decode)
		}
	}
	all.Wait()
	return !failed.Load()
}

// decodeGroup decodes a few records in memory of their own.
func decodeGroup(entries []entry, group []int) bool {
	size := 0
	for _, i := range group {
		size += len(entries[i].raw)
	}
	var text strings.Builder
	text.Grow(size)
	for _, i := range group {
		text.WriteString(entries[i].raw)
	}
	r := newReader(text.String())
	for n, i := range group {
		start := r.at
		r.left = len(group) - n
		e, err := r.entry()
		if err != nil || r.at != start+len(entries[i].raw) {
			return false
		}
		e.raw = r.text[start:r.at]
		entries[i] = e
	}
	return true
}
