package proxy

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

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
