package sidecar

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"scopeward/proxy"
	"scopeward/sidecar/router"
)

const (
	// healFor is how long after the router's return modules are looked after: a
	// module may take a while to end after its connection has.
	healFor = 30 * time.Second
	// healEvery is how often, the first look being at once.
	healEvery = 500 * time.Millisecond
	// healAnswer is how long the router may take for a list or a restart.
	healAnswer = 10 * time.Second
	// healTries is how often one module is restarted in that time: one that ends by
	// itself again and again is left alone.
	healTries = 3
)

// healer restarts the modules that our own end has stopped. A module whose
// connection ends exits 0, and the router leaves it stopped for good. So the ids
// that said Hello through us are kept in a file that outlives us; an id leaves it
// when its connection ends by somebody else's act while we run.
type healer struct {
	path    string // of the state file; "" keeps and heals nothing
	log     *zap.Logger
	changed chan struct{} // one token: the file is behind
	cut     chan struct{} // one token: a module was cut off by us

	mu       sync.Mutex
	ids      map[string]struct{}
	conns    map[proxy.ConnID]string // live registrations
	expected map[proxy.ConnID]string // Hellos that are not answered yet
	saved    map[string]struct{}     // what the file has, as far as it can be written
	waiting  []func()                // to be called after the next save
	held     bool                    // we end: nothing is forgotten any more
	over     bool                    // run has returned: nobody saves
}

func newHealer(path string, log *zap.Logger) *healer {
	return &healer{
		path: path, log: log, changed: make(chan struct{}, 1), cut: make(chan struct{}, 1),
		ids: map[string]struct{}{}, conns: map[proxy.ConnID]string{}, expected: map[proxy.ConnID]string{},
	}
}

// load reads what an earlier process left. A file that can't be read costs its
// content and no more.
func (h *healer) load() {
	if h.path == "" {
		return
	}
	s, err := readState(h.path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			h.log.Warn("the heal state is not read; modules that we stopped stay stopped", zap.String("path", h.path), zap.Error(err))
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range s.Modules {
		h.ids[id] = struct{}{}
	}
}

// run keeps the file up to date until ctx ends, and once more then.
func (h *healer) run(ctx context.Context) {
	defer h.end()
	for {
		select {
		case <-h.changed:
			h.save()
		case <-ctx.Done():
			select {
			case <-h.changed:
				h.save()
			default:
			}
			return
		}
	}
}

func (h *healer) save() {
	h.mu.Lock()
	ids := maps.Clone(h.ids)
	for _, id := range h.expected {
		ids[id] = struct{}{}
	}
	maps.DeleteFunc(h.saved, func(id string, _ struct{}) bool { _, stays := ids[id]; return !stays })
	waiting := h.waiting
	h.waiting = nil
	h.mu.Unlock()
	h.write(ids)
	h.mu.Lock()
	h.saved = ids
	h.mu.Unlock()
	for _, tell := range waiting {
		tell()
	}
}

func (h *healer) write(ids map[string]struct{}) {
	s := state{Version: stateVersion, Modules: slices.Sorted(maps.Keys(ids))}
	if err := s.write(h.path); err != nil {
		h.log.Warn("the heal state is not written; a restart of ours would leave modules stopped", zap.String("path", h.path), zap.Error(err))
	}
}

func (h *healer) touchLocked() {
	if h.path == "" {
		return
	}
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// registered notes a Hello that the router accepted.
func (h *healer) registered(id proxy.ConnID, moduleID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns[id] = moduleID
	delete(h.expected, id)
	if _, ok := h.ids[moduleID]; !ok {
		h.ids[moduleID] = struct{}{}
		h.touchLocked()
	}
}

// unregistered notes the end of a registration that was not our act.
func (h *healer) unregistered(id proxy.ConnID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	moduleID, ok := h.conns[id]
	if !ok {
		return
	}
	delete(h.conns, id)
	for _, other := range h.conns {
		if other == moduleID {
			return
		}
	}
	delete(h.ids, moduleID)
	h.touchLocked()
}

// severed notes that a registration ends now by our own act while we go on: its
// module is looked after.
func (h *healer) severed(id proxy.ConnID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.conns[id]; !ok {
		return
	}
	delete(h.conns, id)
	select {
	case h.cut <- struct{}{}:
	default:
	}
}

// hold says that every registration ends now by our own act: the ids stay.
func (h *healer) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.conns)
	h.held = true
}

// wanted reports whether the id said Hello through us and does not now.
func (h *healer) wanted(moduleID string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.ids[moduleID]; !ok {
		return false
	}
	for _, live := range h.conns {
		if live == moduleID {
			return false
		}
	}
	return true
}

// heal looks after stopped modules until ctx ends: for a while after the router's
// return, and again after each cut of ours.
func (h *healer) heal(ctx context.Context, link *router.Link) {
	for {
		if h.path != "" {
			h.watch(ctx, link)
		}
		select {
		case <-h.cut:
		case <-ctx.Done():
			return
		}
	}
}

func (h *healer) watch(ctx context.Context, link *router.Link) {
	ctx, cancel := context.WithTimeout(ctx, healFor)
	defer cancel()
	tick := time.NewTicker(healEvery)
	defer tick.Stop()
	tried := map[string]int{}
	for {
		h.look(ctx, link, tried)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (h *healer) look(ctx context.Context, link *router.Link, tried map[string]int) {
	if !h.any() {
		return
	}
	asking, cancel := context.WithTimeout(ctx, healAnswer)
	defer cancel()
	modules, err := link.Modules(asking)
	if err != nil {
		return
	}
	for _, m := range modules {
		if !m.StoppedCleanly() || !h.wanted(m.ID) || tried[m.ID] == healTries {
			continue
		}
		tried[m.ID]++
		if err := h.restart(ctx, link, m.ID); err != nil {
			h.log.Warn("a module that our end had stopped was not restarted", zap.String("module", m.ID), zap.Error(err))
			continue
		}
		h.log.Info("restarted a module that our end had stopped", zap.String("module", m.ID))
	}
}

func (h *healer) restart(ctx context.Context, link *router.Link, moduleID string) error {
	ctx, cancel := context.WithTimeout(ctx, healAnswer)
	defer cancel()
	return link.Restart(ctx, moduleID)
}

func (h *healer) any() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ids) > 0
}
