package connfile

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Change is what may have happened to a watched file.
type Change uint8

const (
	// Changed says that the file is there and may be another than before.
	Changed Change = iota + 1
	// Removed says that there is no file.
	Removed
)

// Watcher reports changes of one file until it is closed.
type Watcher struct {
	fs      *fsnotify.Watcher
	path    string
	dir     string // the folder to watch
	armed   string // the folder that is watched: dir, or the deepest above it that exists
	changes chan Change
	done    sync.WaitGroup
}

// Watch watches the file at path by its folder. A folder that does not exist,
// or that is removed, is waited for. The caller reads the file once after Watch
// returns: what came before is not reported.
func Watch(path string) (*Watcher, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, &FileError{path, "cannot be watched: " + cause(err), "", err}
	}
	w := &Watcher{path: path, dir: filepath.Dir(path), changes: make(chan Change, 1)}
	if w.fs, err = fsnotify.NewWatcher(); err != nil {
		return nil, &FileError{path, "cannot be watched: " + err.Error(), "raise fs.inotify.max_user_instances", err}
	}
	w.arm()
	w.done.Go(w.run)
	return w, nil
}

// Changes delivers the newest change that was not read yet. It holds one: a
// burst of writes wakes a slow reader once, with the last state. It is closed by
// Close.
func (w *Watcher) Changes() <-chan Change { return w.changes }

// Close ends the watch and waits for it.
func (w *Watcher) Close() error {
	err := w.fs.Close()
	w.done.Wait()
	return err
}

func (w *Watcher) run() {
	defer close(w.changes)
	for {
		select {
		case e, ok := <-w.fs.Events:
			if !ok {
				return
			}
			w.handle(e)
		case _, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			// An overflow lost events: look again.
			w.arm()
			w.report()
		}
	}
}

func (w *Watcher) handle(e fsnotify.Event) {
	if w.armed == w.dir && e.Name != w.dir {
		if e.Name == w.path {
			w.report()
		}
		return
	}
	// The folder itself is gone, or one on the way to it came or went.
	before := w.armed
	w.arm()
	if before == w.dir || w.armed == w.dir {
		w.report()
	}
}

// arm watches dir, or the deepest folder above it that exists.
func (w *Watcher) arm() {
	for last := ""; ; {
		dir := w.dir
		for w.fs.Add(dir) != nil {
			if dir == filepath.Dir(dir) {
				return
			}
			dir = filepath.Dir(dir)
		}
		if w.armed != dir && w.armed != "" {
			w.fs.Remove(w.armed)
		}
		w.armed = dir
		// What appeared between the two looks is in no event. A folder that is there
		// and can't be watched would be looked at for ever: only progress counts.
		if dir == w.dir || len(dir) <= len(last) || !exists(childToward(dir, w.dir)) {
			return
		}
		last = dir
	}
}

// childToward returns the folder directly in dir that leads to target.
func childToward(dir, target string) string {
	for filepath.Dir(target) != dir {
		target = filepath.Dir(target)
	}
	return target
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// report leaves the file's state for the reader, in place of an older one.
func (w *Watcher) report() {
	change := Removed
	if exists(w.path) {
		change = Changed
	}
	select {
	case <-w.changes:
	default:
	}
	w.changes <- change
}
