package connfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"
)

func newTestWatcher(t *testing.T, path string) *Watcher {
	t.Helper()
	w, err := Watch(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

// mustSee waits until the newest change is want: steps of a burst may be
// reported one by one or as one.
func mustSee(t *testing.T, w *Watcher, want Change) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case got, ok := <-w.Changes():
			require.True(t, ok)
			if got == want {
				return
			}
		case <-late:
			t.Fatalf("change %d was not reported", want)
		}
	}
}

func TestWatchSeesPublishReplaceAndRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), Name)
	w := newTestWatcher(t, path)
	mustPublish(t, path, testFile())
	mustSee(t, w, Changed)
	mustPublish(t, path, testFile())
	mustSee(t, w, Changed)
	require.NoError(t, os.Remove(path))
	mustSee(t, w, Removed)
	mustPublish(t, path, testFile())
	mustSee(t, w, Changed)
}

func TestWatchWaitsForAFolderThatIsNotThere(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "a", "b", "c", Name)
	w := newTestWatcher(t, path)
	mustPublish(t, path, testFile())
	mustSee(t, w, Changed)
	require.NoError(t, os.RemoveAll(filepath.Join(root, "a")))
	mustSee(t, w, Removed)
	mustPublish(t, path, testFile())
	mustSee(t, w, Changed)
}

func TestWatchSeesItsFolderRenamedAway(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "run", Name)
	mustPublish(t, path, testFile())
	w := newTestWatcher(t, path)
	require.NoError(t, os.Rename(filepath.Join(root, "run"), filepath.Join(root, "old")))
	mustSee(t, w, Removed)
	mustPublish(t, path, testFile())
	mustSee(t, w, Changed)
}

func TestWatchSeesAFileThatComesWithItsFolder(t *testing.T) {
	root := t.TempDir()
	mustPublish(t, filepath.Join(root, "new", Name), testFile())
	w := newTestWatcher(t, filepath.Join(root, "run", Name))
	require.NoError(t, os.Rename(filepath.Join(root, "new"), filepath.Join(root, "run")))
	mustSee(t, w, Changed)
}

func TestWatchKeepsQuietAboutItsNeighbours(t *testing.T) {
	dir := t.TempDir()
	w := &Watcher{path: filepath.Join(dir, Name), dir: dir, armed: dir, changes: make(chan Change, 1)}
	w.handle(fsnotify.Event{Name: filepath.Join(dir, "other"), Op: fsnotify.Create})
	require.Empty(t, w.changes)
	w.handle(fsnotify.Event{Name: w.path, Op: fsnotify.Remove})
	require.Equal(t, Removed, <-w.changes)
}

func TestWatchHoldsOneChangeForASlowReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), Name)
	w := newTestWatcher(t, path)
	for range 200 {
		mustPublish(t, path, testFile())
	}
	require.NoError(t, os.Remove(path))
	mustSee(t, w, Removed)
	require.LessOrEqual(t, len(w.Changes()), 1)
}
