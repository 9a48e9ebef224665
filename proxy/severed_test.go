package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Only a cut of ours severs a registration: its module stays stopped for no
// reason of its own.
func TestSeveredIsWhatWeEndAndNobodyElseMeantTo(t *testing.T) {
	r := newRig(t)
	tool, other, client := r.module("tool"), r.module("other"), r.connect()
	other.s.End("the peer closed")
	r.module("third").s.Handle(cutEvent{"its launch has exited"})
	client.s.cut("too much is queued")
	require.Empty(t, r.facts.severed)
	tool.s.cut("too much is queued")
	tool.s.cut("again")
	require.Equal(t, []ConnID{tool.s.id}, r.facts.severed)
	require.True(t, tool.s.Ended())
}
