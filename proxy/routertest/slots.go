package routertest

import "math"

// slots numbers the channels of one side of one connection. Numbers count up
// and come round; each use of one is an epoch of its own.
type slots struct {
	epochs map[uint16]uint32
	next   uint16
}

func newSlots() slots { return slots{epochs: map[uint16]uint32{}, next: 1} }

// free finds the next channel that is not busy.
func (s *slots) free(busy func(uint16) bool) (uint16, bool) {
	channel := s.next
	for {
		if !busy(channel) && s.epochs[channel] < math.MaxUint32 {
			return channel, true
		}
		if channel = after(channel); channel == s.next {
			return 0, false
		}
	}
}

// use begins the next epoch of channel.
func (s *slots) use(channel uint16) uint32 {
	s.epochs[channel]++
	s.next = after(channel)
	return s.epochs[channel]
}

func after(channel uint16) uint16 {
	if channel == math.MaxUint16 {
		return 1
	}
	return channel + 1
}
