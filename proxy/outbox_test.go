package proxy

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// writesKernel notes whose socket is written, and takes everything.
type writesKernel struct {
	kernel
	fds []int
}

func (k *writesKernel) write(fd int, b []byte) (int, error) {
	k.fds = append(k.fds, fd)
	return len(b), nil
}

func TestWhatGoesOnIsWrittenBeforeWhatTurnsBack(t *testing.T) {
	l, p, _, _ := newTestPair(t)
	router, peer := p.sides[toPeer].fd, p.sides[toRouter].fd
	for dir, want := range map[direction][]int{toRouter: {router, peer}, toPeer: {peer, router}} {
		k := &writesKernel{kernel: rawKernel{}}
		l.kernel = k
		for d := range p.session.outs {
			p.session.outs[d].relay([]byte("x"))
		}
		l.carry(p, dir)
		require.Equal(t, want, k.fds, dir)
	}
}

func TestSmallSegmentsAreOneWrite(t *testing.T) {
	large := bytes.Repeat([]byte("x"), maxTogether)
	segs := [][]byte{[]byte("a"), []byte("b"), []byte("c"), large, []byte("d"), []byte("e"), large[:maxTogether-1], []byte("f")}
	var l Loop
	var writes []string
	for len(segs) > 0 {
		var b []byte
		b, segs = l.together(segs)
		writes = append(writes, string(b))
	}
	require.Equal(t, []string{"abc", string(large), "de", string(large[:maxTogether-1]) + "f"}, writes)
}
