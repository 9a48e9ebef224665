package proxy

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSmallFramesOfOursAreOneWrite(t *testing.T) {
	shared := []byte("first|behind")
	var o outbox
	o.inject(shared[:6], true, false)
	o.inject([]byte("second|"), true, false)
	o.inject([]byte("third|"), true, true)
	segs, goodbye := o.take()
	require.Equal(t, []string{"first|second|third|"}, text(segs))
	require.True(t, goodbye)
	require.Equal(t, "first|behind", string(shared), "memory that is not ours is not written")

	o.inject([]byte("a"), true, false)
	o.relay([]byte("B"))
	o.inject([]byte("c"), true, false)
	o.inject(bytes.Repeat([]byte("d"), maxTogether), true, false)
	segs, _ = o.take()
	require.Len(t, segs, 4, "relayed bytes are not copied, and much of ours is not")
	require.Equal(t, []string{"a", "B", "c"}, text(segs[:3]))
}

func text(segs [][]byte) (list []string) {
	for _, s := range segs {
		list = append(list, string(s))
	}
	return list
}
