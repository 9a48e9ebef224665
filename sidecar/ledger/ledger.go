package ledger

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"scopeward/table"
)

// Params is what a ledger is opened with.
type Params struct {
	Path string // made with mode 0600 when it is not there
	Log  *zap.Logger
	Now  func() int64 // Unix milliseconds, wall clock; nil is the machine's
	// Wait bounds how long the answer to an accepted call waits for the disk.
	Wait time.Duration
	// Tombstones makes [Ledger.Remembered] answer.
	Tombstones bool
}

// Ledger is an open ledger. It is safe for concurrent use, and for several tables
// at a time, one of which may be of a router that is gone.
type Ledger struct {
	log    *zap.Logger
	now    func() int64
	wait   time.Duration
	db     *bbolt.DB
	update func(*bbolt.DB, func(*bbolt.Tx) error) error

	queue

	closing chan struct{} // closed by Close
	closed  sync.Once
	done    chan struct{} // closed when the writer has ended
	endErr  error         // of the file's close; read after done
}

// Open opens the ledger at p.Path and starts its writer. Errors are [FileError].
func Open(p Params) (*Ledger, error) { return open(p, update) }

func open(p Params, update func(*bbolt.DB, func(*bbolt.Tx) error) error) (*Ledger, error) {
	db, err := openFile(p.Path, toWrite)
	if err != nil {
		return nil, err
	}
	l := &Ledger{
		log: p.Log, now: p.Now, wait: p.Wait, db: db, update: update,
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	if l.now == nil {
		l.now = func() int64 { return time.Now().UnixMilli() }
	}
	l.queue.init()
	if err := view(db, func(tx *bbolt.Tx) (err error) {
		head, err := readHead(tx)
		l.stats.Head = head.number
		if err == nil && p.Tombstones {
			l.remembered, err = loadRemembered(tx, MaxEnds)
		}
		return err
	}); err != nil {
		_ = db.Close()
		return nil, &FileError{Path: p.Path, Err: err}
	}
	go l.write()
	return l, nil
}

// Remembered is where a table looks for ends that it does not hold itself; nil
// when tombstones are off.
func (l *Ledger) Remembered() table.TombstoneReader {
	if l.remembered == nil {
		return nil
	}
	return l
}

// Cause implements [table.TombstoneReader]. It answers from memory.
func (l *Ledger) Cause(id table.ScopeID) (table.Cause, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remembered.cause(id)
}

// Close writes what is queued, or gives it up when that fails, ends the writer and
// closes the file. With ctx at its end it returns and leaves that to the writer.
func (l *Ledger) Close(ctx context.Context) error {
	l.closed.Do(func() { close(l.closing) })
	select {
	case <-l.done:
		return l.endErr
	case <-ctx.Done():
		return ctx.Err()
	}
}
