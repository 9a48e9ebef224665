package bpf

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func closeFD(fd int) error { return unix.Close(fd) }

// What asking costs a connection: the record, the pidfd, the start time, the
// executable, and letting go. Connecting is not measured. The goal is under
// 100 µs at the median.
func BenchmarkPeer(b *testing.B) {
	for _, source := range []Source{SourceEBPF, SourceProcfs} {
		b.Run(source.String(), func(b *testing.B) {
			var a *Attributor
			if source == SourceEBPF {
				a = newTestAttributor(b, Params{})
			} else {
				a = newTestProcfs(b)
			}
			l := newTestListener(b, "127.0.0.1:0")
			require.NoError(b, a.SetPort(portOf(l), RoleOwn))
			c := newChild(b)
			var took []time.Duration
			for b.Loop() {
				c.do(b, "connect v4 %s", l.Addr())
				s, err := l.AcceptTCP()
				require.NoError(b, err)
				start := time.Now()
				p := a.Peer(SocketOf(s))
				known := p.Process().Known
				require.NoError(b, p.Close())
				took = append(took, time.Since(start))
				require.True(b, known)
				s.Close()
				c.do(b, "close")
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
			b.ReportMetric(0, "ns/op") // it holds the connecting
		})
	}
}

// What the hooks cost a connection: a whole connect, accept and close, watched
// and not.
func BenchmarkConnect(b *testing.B) {
	for _, watched := range []bool{false, true} {
		name := "unwatched"
		if watched {
			name = "watched"
		}
		b.Run(name, func(b *testing.B) {
			l := newTestListener(b, "127.0.0.1:0")
			if watched {
				a := newTestAttributor(b, Params{})
				require.NoError(b, a.SetPort(portOf(l), RoleOwn))
			}
			for b.Loop() {
				fd, err := connectAs("v4", l.Addr().String(), "")
				require.NoError(b, err)
				s, err := l.AcceptTCP()
				require.NoError(b, err)
				s.Close()
				require.NoError(b, closeFD(fd))
			}
		})
	}
}
