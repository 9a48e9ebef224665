package ledger

import (
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"
)

// How long the writer waits after a failure: the first, and at most. It doubles.
const (
	retryFirst = time.Second
	retryMost  = time.Minute
)

// write is the writer: the only one who appends to the file. It ends after Close,
// with what was queued written or given up, and closes the file.
func (l *Ledger) write() {
	defer close(l.done)
	defer func() { l.endErr = l.db.Close() }()
	var lost uint64
	retry := retryFirst
	for {
		batch := l.take()
		if len(batch) == 0 {
			select {
			case <-l.wake:
				continue
			case <-l.closing:
			}
			if batch = l.take(); len(batch) == 0 {
				return
			}
		}
		final := l.isClosing()
		err := l.append(batch)
		lost = l.reportLost(lost)
		if err == nil {
			retry = retryFirst
			continue
		}
		s := l.failed()
		l.log.Error("the ledger can't be written; decisions go on without it",
			zap.Error(err), zap.Uint64("errors", s.Errors), zap.Int("queued", s.Queued), zap.Duration("retry", retry))
		if final {
			l.log.Error("the ledger lost what it could not write", zap.Uint64("lost", l.abandon()))
			return
		}
		select {
		case <-l.closing:
		case <-time.After(retry):
		}
		retry = min(2*retry, retryMost)
	}
}

func (l *Ledger) isClosing() bool {
	select {
	case <-l.closing:
		return true
	default:
		return false
	}
}

// append writes a batch in one transaction and says that it is durable.
func (l *Ledger) append(batch []note) error {
	var a *appender
	err := l.update(l.db, func(tx *bbolt.Tx) (err error) {
		if a, err = newAppender(tx, MaxEnds); err != nil {
			return err
		}
		for i := range batch {
			if err := a.note(&batch[i]); err != nil {
				return err
			}
		}
		return a.finish()
	})
	if err != nil {
		return err
	}
	l.settled(batch, a.added, a.head.number)
	return nil
}

func (a *appender) note(n *note) error {
	for _, end := range n.ends {
		if err := a.end(end, n.at); err != nil {
			return err
		}
	}
	for _, c := range n.contents {
		if err := a.content(c, n.at); err != nil {
			return err
		}
	}
	return nil
}

// reportLost tells of changes that found no room since known.
func (l *Ledger) reportLost(known uint64) uint64 {
	s := l.Stats()
	if s.Lost > known {
		l.log.Error("the ledger's queue is full: changes are lost to it", zap.Uint64("lost", s.Lost))
	}
	return s.Lost
}
