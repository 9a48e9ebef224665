package operator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"scopeward/proxy"
	"scopeward/sidecar/launch"
	"scopeward/sidecar/operator/api"
)

// omissionsEvery is how often it is told what was left out of the log.
const omissionsEvery = 10 * time.Second

// Processes says which process opened a connection, the zero process for one
// that is not attributed. [launch.Table] does. It must not block.
type Processes interface {
	Peer(id proxy.ConnID) launch.Process
}

// JournalParams are what a journal is made of. All are required.
type JournalParams struct {
	Log     *zap.Logger
	Metrics *Metrics
}

// Journal takes every decision: it counts it, keeps it when it is a refusal,
// hands it to the readers of the event stream, and writes it to the log. It
// implements [proxy.Recorder]. Nothing that calls it waits for a reader or for
// the log.
type Journal struct {
	log     *zap.Logger
	metrics *Metrics

	processes atomic.Pointer[Processes]
	seq       atomic.Uint64
	omitted   atomic.Uint64 // lines that an opener's share left out
	refusals  ring
	hub       *hub
	limiter   *limiter
	queue     *queue
	writer    sync.WaitGroup
}

// NewJournal makes a journal and starts its writer. [Journal.Close] ends it.
func NewJournal(p JournalParams) *Journal {
	j := &Journal{log: p.Log, metrics: p.Metrics, hub: newHub(), limiter: newLimiter(), queue: newQueue()}
	p.Metrics.watch(j)
	j.writer.Go(j.write)
	return j
}

// Attribute names who knows the processes behind connections. Before it is
// called, nobody does.
func (j *Journal) Attribute(p Processes) { j.processes.Store(&p) }

// Record implements [proxy.Recorder].
func (j *Journal) Record(d proxy.Decision) {
	j.metrics.decided(d)
	owed := d.Kind == proxy.Expired
	opener := d.Opener
	if opener == 0 {
		opener = d.Conn
	}
	logged := owed || j.logs(d.Kind.String()) && j.share(opener, d.AtMS)
	if logged || isRefusal(d.Kind.String()) || j.hub.readers.Load() > 0 {
		e := eventOf(d)
		j.name(e)
		j.spread(e, logged, owed)
	}
	if d.Applied != nil {
		if n := len(d.Applied.Contents()); n > 0 {
			j.metrics.add(kindRecordAccepted, ruleRecord, "", n)
		}
		eachRecord(d, func(kind, code string, event func() *api.Event) {
			if kind != kindRecordAccepted { // these are counted at once
				j.metrics.count(kind, ruleRecord, code)
			}
			logged := j.logs(kind) && j.share(opener, d.AtMS)
			if logged || isRefusal(kind) || j.hub.readers.Load() > 0 {
				e := event()
				j.name(e)
				j.spread(e, logged, false)
			}
		})
	}
}

// Mismatch takes an identity from a process that it was not given to. It is
// what [launch.Params.Report] calls.
func (j *Journal) Mismatch(m launch.Mismatch) {
	j.metrics.mismatch(m)
	e := mismatchEvent(m, time.Now().UnixMilli())
	j.spread(e, j.logs(e.Kind) && j.share(m.Conn, e.AtMS), false)
}

// evicted takes what an operator did.
func (j *Journal) evicted(e *api.Event) {
	e.Kind, e.AtMS = kindEvicted, time.Now().UnixMilli()
	j.metrics.count(e.Kind, e.Rule, e.Code)
	j.spread(e, true, true)
}

// logs says whether the log takes lines of a kind at all.
func (j *Journal) logs(kind string) bool {
	level, _ := wording(kind)
	return j.log.Core().Enabled(level)
}

// share takes a line from the share of an opener.
func (j *Journal) share(opener proxy.ConnID, now int64) bool {
	if j.limiter.allow(opener, now) {
		return true
	}
	j.omitted.Add(1)
	return false
}

// name adds the process behind the opener, while its connection is still known.
func (j *Journal) name(e *api.Event) {
	p := j.processes.Load()
	if p == nil {
		return
	}
	conn := e.Opener
	if conn == 0 {
		conn = e.Conn
	}
	if conn != 0 {
		who := (*p).Peer(conn)
		e.PID, e.Exe = int64(who.PID), who.Exe
	}
}

// spread numbers an event and hands it to all who get it. From here on it is
// never changed.
func (j *Journal) spread(e *api.Event, logged, owed bool) {
	e.Seq = j.seq.Add(1)
	if isRefusal(e.Kind) {
		j.refusals.add(e)
	}
	if j.hub.readers.Load() > 0 {
		j.hub.publish(e)
	}
	if logged {
		j.queue.put(e, owed)
	}
}

// dropped is how many lines the log has not got.
func (j *Journal) dropped() uint64 { return j.omitted.Load() + j.queue.overflown() }

// write is the log's writer. What follows a line is waited for: whoever decides
// something wakes the writer once for all of it.
func (j *Journal) write() {
	tick := time.NewTicker(omissionsEvery)
	defer tick.Stop()
	var lines []*api.Event
	var overflown uint64
	for closed := false; !closed; {
		select {
		case <-j.queue.wake:
			time.Sleep(gatherFor)
		case <-tick.C:
			overflown = j.tellOmissions(overflown)
		}
		lines, closed = j.queue.take(lines)
		for _, e := range lines {
			write(j.log, e)
		}
	}
	j.tellOmissions(overflown)
}

// tellOmissions says what was left out since the last time.
func (j *Journal) tellOmissions(before uint64) uint64 {
	for _, o := range j.limiter.omissions() {
		f := []zap.Field{zap.Uint64("dropped", o.dropped)}
		if o.opener != 0 {
			f = append(f, zap.Uint64("opener", o.opener))
		}
		j.log.Info("decisions were left out of the log: the opener's share was used up", f...)
	}
	now := j.queue.overflown()
	if now > before {
		j.log.Warn("decisions were left out of the log: it was not written fast enough", zap.Uint64("dropped", now-before))
	}
	return now
}

// Close writes what waits and ends the writer, or leaves it when ctx ends first.
func (j *Journal) Close(ctx context.Context) error {
	j.queue.close()
	done := make(chan struct{})
	go func() {
		j.writer.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
