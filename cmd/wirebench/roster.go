package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// socketEnv names the roster's socket to a puppet.
const socketEnv = "WIREBENCH_ROSTER"

// launch is one start of a module by a router.
type launch struct {
	Module string `json:"module"`
	Nonce  string `json:"nonce"` // a secret
}

// roster is where a world's puppets report. A puppet lives as long as its
// connection, so it never outlives this program.
type roster struct {
	listener net.Listener
	arrived  chan launch
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	ended bool
}

func openRoster(path string) (*roster, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	r := &roster{listener: l, arrived: make(chan launch, 64)}
	r.wg.Go(r.accept)
	return r, nil
}

func (r *roster) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.conns = append(r.conns, c)
		if r.ended {
			c.Close()
		}
		r.mu.Unlock()
		r.wg.Go(func() {
			var l launch
			line, err := bufio.NewReader(c).ReadBytes('\n')
			if err == nil && json.Unmarshal(line, &l) == nil {
				r.arrived <- l
			}
		})
	}
}

// collect waits until every module was launched.
func (r *roster) collect(modules []string, limit time.Duration) (map[string]launch, error) {
	late := time.After(limit)
	got := make(map[string]launch)
	for len(got) < len(modules) {
		select {
		case l := <-r.arrived:
			got[l.Module] = l
		case <-late:
			return nil, fmt.Errorf("%d of %d modules launched in %v", len(got), len(modules), limit)
		}
	}
	return got, nil
}

// close lets the puppets go.
func (r *roster) close() {
	r.listener.Close()
	r.mu.Lock()
	r.ended = true
	for _, c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// puppet is this program as a router's module: it reports its launch to the
// roster and waits for the roster's end.
func puppet(path string) error {
	nonce, err := launchNonce()
	if err != nil {
		return err
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	defer c.Close()
	report, err := json.Marshal(launch{Module: os.Getenv("SUBC_MODULE_ID"), Nonce: nonce})
	if err != nil {
		return err
	}
	if _, err := c.Write(append(report, '\n')); err != nil {
		return err
	}
	var b [1]byte
	_, _ = c.Read(b[:])
	return nil
}
