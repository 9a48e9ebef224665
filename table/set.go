package table

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Element is what a [Set] holds: a value with a total order. Compare is negative,
// zero or positive as the receiver sorts before, with or after the argument. Zero
// means the same element.
type Element[E any] interface {
	Compare(E) int
}

// Set is an immutable set. It keeps set operations in Go and has one form
// everywhere else: a sorted array without repeats (ADR-0134). The zero value is
// the empty set.
type Set[E Element[E]] struct {
	sorted []E
}

// NewSet makes a set of elements, in whatever order and however often they come.
func NewSet[E Element[E]](elements ...E) Set[E] {
	return setOf(slices.Clone(elements))
}

// setOf takes elements over.
func setOf[E Element[E]](elements []E) Set[E] {
	if len(elements) == 0 {
		return Set[E]{}
	}
	slices.SortFunc(elements, E.Compare)
	same := func(a, b E) bool { return a.Compare(b) == 0 }
	return Set[E]{sorted: slices.CompactFunc(elements, same)}
}

// Len is how many elements s has.
func (s Set[E]) Len() int { return len(s.sorted) }

// Sorted is the elements in order. The caller must not change it.
func (s Set[E]) Sorted() []E { return s.sorted }

// Contains says whether e is in s.
func (s Set[E]) Contains(e E) bool {
	_, found := slices.BinarySearchFunc(s.sorted, e, E.Compare)
	return found
}

// Equal says whether s and t hold the same elements.
func (s Set[E]) Equal(t Set[E]) bool { return s.Compare(t) == 0 }

// Subset says whether every element of s is in of.
func (s Set[E]) Subset(of Set[E]) bool {
	return !slices.ContainsFunc(s.sorted, func(e E) bool { return !of.Contains(e) })
}

// Difference is the elements of s that are not in without.
func (s Set[E]) Difference(without Set[E]) Set[E] {
	var rest []E
	for _, e := range s.sorted {
		if !without.Contains(e) {
			rest = append(rest, e)
		}
	}
	return Set[E]{sorted: rest}
}

// Union is the elements of s and of t.
func (s Set[E]) Union(t Set[E]) Set[E] {
	return setOf(slices.Concat(s.sorted, t.sorted))
}

// Compare orders sets as their sorted arrays are ordered.
func (s Set[E]) Compare(t Set[E]) int {
	return slices.CompareFunc(s.sorted, t.sorted, E.Compare)
}

// MarshalJSONTo writes the sorted array.
func (s Set[E]) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for _, e := range s.sorted {
		if err := json.MarshalEncode(enc, e); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndArray)
}
