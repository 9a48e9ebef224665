package operator

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"scopeward/proxy"
	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

// set is a sync of core's, "ref epoch agent" each.
func set(generation int, records ...string) string {
	b := &bytes.Buffer{}
	fmt.Fprintf(b, `{"generation":%d,"scopes":[`, generation)
	for i, r := range records {
		var ref, agent string
		var epoch int
		fmt.Sscan(r, &ref, &epoch, &agent)
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, `{"ref":%q,"scope_epoch":%d,"kind":"head","attributes":{"agent_id":%q}}`, ref, epoch, agent)
	}
	return b.String() + "]}"
}

func inWords(e api.Event) string {
	if e.ScopeEpoch == nil {
		return e.Kind + " " + e.Owner + ": " + e.Message
	}
	return fmt.Sprintf("%s %s %s@%d", e.Kind, e.Owner, e.Ref, *e.ScopeEpoch)
}

func TestEventsTellWhatBecomesOfScopes(t *testing.T) {
	s := newTestServer(t)
	s.proxy.world = newTestWorld(t)
	all, err := s.Events(t.Context())
	require.NoError(t, err)
	defer all.Close()
	ends, err := s.Events(t.Context(), "scope_ended", "drained")
	require.NoError(t, err)
	defer ends.Close()
	tb := s.proxy.world.Table
	syncInto(t, tb, set(6, "good 1 bob", "new 3 eve"))
	syncInto(t, tb, set(7, "new 4 eve"))
	for _, want := range []string{
		"scope_created reserved:core new@3", "scope_changed reserved:core good@1",
		"scope_ended reserved:core good@1", "scope_ended reserved:core new@3", "scope_created reserved:core new@4",
	} {
		e, err := all.Next()
		require.NoError(t, err)
		require.Equal(t, want, inWords(e))
		require.Equal(t, e.Kind == "scope_ended", e.Digest == "")
	}
	for _, want := range []string{"good@1", "new@3"} {
		e, err := ends.Next()
		require.NoError(t, err)
		require.Equal(t, "scope_ended reserved:core "+want, inWords(e))
	}
}

func newTestFeed(t *testing.T, p *fakeProxy, kinds ...string) *feedReader {
	j, _ := newTestJournal(t, zap.DebugLevel)
	return newFeedReader(p, j, kinds)
}

// A reader that comes while there is no router, or that sees another one come, is
// told the new incarnation from its beginning.
func TestFeedTellsANewIncarnationFromItsBeginning(t *testing.T) {
	p := &fakeProxy{}
	f := newTestFeed(t, p)
	require.Nil(t, f.woken(), "no router")
	for range 2 {
		p.world = newTestWorld(t)
		<-f.woken()
		b, ok := f.tell(nil)
		require.True(t, ok)
		require.Contains(t, string(b), `"kind":"owner_synced"`)
		require.Contains(t, string(b), `"message":"1 scopes are live"`)
		select {
		case <-f.woken():
			require.Fail(t, "there is nothing more")
		default:
		}
	}
}

func TestFeedOfAReaderThatIsTooLateHasAGap(t *testing.T) {
	tb := table.New(table.Config{Incarnation: "00", Limits: table.Limits{Events: 2}})
	p := &fakeProxy{world: &proxy.World{Table: tb, Incarnation: "00"}}
	f := newTestFeed(t, p)
	syncInto(t, tb, `{"generation":1,"scopes":[]}`)
	_, ok := f.tell(nil)
	require.True(t, ok)
	syncInto(t, tb, `{"generation":2,"scopes":[{"ref":"a","scope_epoch":1,"kind":"head"},{"ref":"b","scope_epoch":1,"kind":"head"},{"ref":"c","scope_epoch":1,"kind":"head"}]}`)
	<-f.woken()
	_, ok = f.tell(nil)
	require.False(t, ok)
}

func TestFeedIsNotFollowedForOtherKinds(t *testing.T) {
	require.Nil(t, newTestFeed(t, &fakeProxy{}, "drained"))
}
