package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"scopeward/sidecar/operator/api"
)

const (
	headerTimeout = 5 * time.Second
	idleTimeout   = time.Minute
	maxHeader     = 64 << 10
	// writeTimeout bounds one answer, and one write of the event stream.
	writeTimeout = 30 * time.Second
)

// Params are what a server is made of. All are required but MetricsAddr.
type Params struct {
	Log            *zap.Logger
	Journal        *Journal
	Metrics        *Metrics
	Prober         *Prober
	Proxy          Proxy
	Launches       Launches
	State          func() State // it must not block
	Ledger         Ledger       // nil: none is kept
	Listener       net.Listener // of [Listen]
	MetricsAddr    string       // loopback host:port for metrics alone; "" serves them at the API only
	Listen         string       // where the sidecar accepts, host:port
	ConnectionFile string       // where it publishes itself
}

// Server serves the operator API. [Server.Close] ends it.
type Server struct {
	p       Params
	started time.Time
	user    uint32
	servers []*http.Server
	running sync.WaitGroup
	cancel  context.CancelFunc // ends event streams
	ending  context.Context
}

// NewServer makes a server and begins to serve. It takes the listener over, and
// closes it when it fails.
func NewServer(ctx context.Context, p Params) (*Server, error) {
	s := &Server{p: p, started: time.Now(), user: effectiveUser()}
	s.ending, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	var metrics net.Listener
	if p.MetricsAddr != "" {
		var err error
		if metrics, err = new(net.ListenConfig).Listen(ctx, "tcp", p.MetricsAddr); err != nil {
			s.cancel()
			p.Listener.Close()
			return nil, fmt.Errorf("\"metrics.listen\" %q: can't be listened on: %s; choose another port, or 0 for a free one", p.MetricsAddr, cause(err))
		}
		p.Log.Info("serving metrics", zap.Stringer("address", metrics.Addr()))
	}
	p.Metrics.registry.MustRegister(gauges{s})
	s.serve(&peers{Listener: p.Listener, log: p.Log, user: s.user}, s.handler())
	if metrics != nil {
		mux := http.NewServeMux()
		mux.Handle("GET "+api.PathMetrics, p.Metrics.Handler())
		s.serve(metrics, mux)
	}
	return s, nil
}

func (s *Server) serve(l net.Listener, h http.Handler) {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ReadTimeout: writeTimeout, ErrorLog: zap.NewStdLog(s.p.Log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
		BaseContext: func(net.Listener) context.Context { return s.ending },
		ConnContext: withPeer,
	}
	s.servers = append(s.servers, srv)
	s.running.Go(func() {
		if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.p.Log.Error("the operator API has ended", zap.Error(err))
		}
	})
}

// Close stops serving, ends event streams, and waits for what is being answered,
// or for ctx: then connections are closed as they are.
func (s *Server) Close(ctx context.Context) error {
	s.cancel()
	var failed error
	for _, srv := range s.servers {
		if err := srv.Shutdown(ctx); err != nil {
			failed = err
			srv.Close()
		}
	}
	s.running.Wait()
	return failed
}
