package operator

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"scopeward/proxy"
	"scopeward/table"
)

// discard is where a benchmark's log goes: encoded and thrown away.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Sync() error                 { return nil }

func newBenchJournal(b *testing.B) *Journal {
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), discard{}, zap.InfoLevel)
	j := NewJournal(JournalParams{Log: zap.New(core), Metrics: NewMetrics()})
	j.Attribute(&fakeLaunches{})
	b.Cleanup(func() { j.Close(context.Background()) })
	return j
}

func benchDecision() proxy.Decision {
	return proxy.Decision{
		Kind: proxy.Admitted, Conn: 4, Opener: 9, Principal: table.ReservedPrincipal("aft"), Scope: scopeID("core", "session-1", 3),
		Target: "tool", Rule: "4 admission", Elapsed: time.Microsecond, Digest: table.Digest{1},
	}
}

// One opener that opens 5,000 times a second: its share of the log is used up.
func BenchmarkRecord(b *testing.B) {
	j, d := newBenchJournal(b), benchDecision()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.AtMS = someMS + int64(i/10)
		j.Record(d)
	}
}

// The same with a reader of the event stream that renders each event.
func BenchmarkRecordWithAReader(b *testing.B) {
	j, d := newBenchJournal(b), benchDecision()
	sub := j.hub.subscribe(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var buf []byte
		for e := range sub.events {
			buf = appendEvent(buf[:0], e)
		}
	}()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.AtMS = someMS + int64(i/10)
		j.Record(d)
		if len(sub.events) > backlog/2 {
			b.StopTimer()
			for len(sub.events) > 0 {
				<-time.After(10 * time.Microsecond)
			}
			b.StartTimer()
		}
	}
	j.hub.unsubscribe(sub)
	close(sub.events)
	<-done
}

// Every decision has a line of its own.
func BenchmarkRecordAndWrite(b *testing.B) {
	j, d := newBenchJournal(b), benchDecision()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.AtMS = someMS + int64(i)*msPerLine
		j.Record(d)
	}
}

func BenchmarkRecordARefusal(b *testing.B) {
	j, d := newBenchJournal(b), benchDecision()
	d.Kind, d.Rule, d.Code, d.Message = proxy.Refused, "4 carrier", "scope_not_carrier", "the opener is no carrier"
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.AtMS = someMS + int64(i/10)
		j.Record(d)
	}
}

func BenchmarkAppendEvent(b *testing.B) {
	e := eventOf(benchDecision())
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = appendEvent(buf[:0], e)
	}
}
