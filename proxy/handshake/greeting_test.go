package handshake

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func newGreeting(t *testing.T) *Greeting {
	t.Helper()
	return NewGreeting(testParams())
}

// A greeting takes its messages in whatever pieces they come, and gives back what
// stands behind the last.
func TestGreetingIsFedInAnyPieces(t *testing.T) {
	p := testParams()
	for _, size := range []int{1, 2, 3, 5, 64, 4096} {
		g := newGreeting(t)
		var n nonces
		feed := func(b []byte) (sent, rest []byte) {
			for len(b) > 0 {
				k := min(size, len(b))
				reply, more, err := g.Feed(b[:k])
				require.NoError(t, err)
				sent, rest = append(sent, reply...), append(rest, more...)
				b = b[k:]
			}
			return sent, rest
		}
		var hello bytes.Buffer
		require.NoError(t, sendClientHello(&hello, &n, RoleClient))
		sent, rest := feed(hello.Bytes())
		require.Empty(t, rest)
		require.False(t, g.Done())
		_, err := receiveServerProof(bytes.NewReader(sent), &n, p.Key)
		require.NoError(t, err)
		proof := n.proof(p.Key, domainClient)
		w := newWriter()
		w.bytes(fieldClientAuth, proof[:])
		auth, err := w.finish()
		require.NoError(t, err)
		sent, rest = feed(append(auth, "a frame"...))
		require.True(t, g.Done())
		require.Empty(t, sent)
		require.Equal(t, "a frame", string(rest))
	}
}
