package sidecar

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"scopeward/proxy"
	"scopeward/sidecar/ledger"
)

// openLedger opens the ledger that the configuration names, if it names one, and
// makes it the journal of every world. It comes before the server and is closed
// after it.
func (s *Sidecar) openLedger(p *proxy.Params) error {
	if s.cfg.Ledger.Path == "" {
		return nil
	}
	l, err := ledger.Open(ledger.Params{
		Path: s.cfg.Ledger.Path, Log: s.log.Named("ledger"), Tombstones: s.cfg.Ledger.Tombstones,
		Wait: time.Duration(s.cfg.Ledger.WaitMS) * time.Millisecond,
	})
	if err != nil {
		return &StartError{`"ledger.path"`, err.Error(), ledgerRemedy(err), err}
	}
	s.ledger = l
	p.Journal, p.Tombstones = l, l.Remembered()
	s.operation.metrics.WatchLedger(l.Stats)
	return nil
}

func ledgerRemedy(err error) string {
	switch {
	case errors.Is(err, ledger.ErrInUse):
		return "stop the other process, or name another file"
	case errors.Is(err, ledger.ErrInsecure):
		return "make sure that it is what you wrote, then take the others' access away"
	case errors.Is(err, ledger.ErrNotLedger):
		return "name another file; this one was left as it is"
	case errors.Is(err, fs.ErrNotExist):
		return "make its folder"
	}
	return "correct that, or take the key out to run without a ledger"
}

// closeLedger writes what is queued. Nothing may be decided any more.
func (s *Sidecar) closeLedger(ctx context.Context) error {
	if s.ledger == nil {
		return nil
	}
	return s.ledger.Close(ctx)
}
