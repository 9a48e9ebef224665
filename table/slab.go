package table

// slab makes values in one piece of memory that belong together and are mostly
// given up together. The zero value is ready.
type slab[T any] struct{ room []T }

// longList is from how many values on a list has a piece of its own.
const longList = 16

// take is n zero values out of a piece that would do for left of the like.
func (s *slab[T]) take(n, left int) []T {
	if n > longList {
		return make([]T, n)
	}
	if n > len(s.room) {
		s.room = make([]T, n*left)
	}
	taken := s.room[:n:n]
	s.room = s.room[n:]
	return taken
}

// copy is list in memory of its own.
func (s *slab[T]) copy(list []T, left int) []T {
	if len(list) == 0 {
		return nil
	}
	taken := s.take(len(list), left)
	copy(taken, list)
	return taken
}
