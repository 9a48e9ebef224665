package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"scopeward/proxy/connfile"
)

// plainEnv tells this program to be the plain relay, and names its listening
// address and the router's with a space between.
const plainEnv = "WIREBENCH_PLAIN"

// plainBuffer is what a direction of the plain relay reads at once, in bytes.
const plainBuffer = 256 << 10

// startPlain puts the relay that anybody would write in Go in front of a
// router: two goroutines a connection that copy.
func startPlain(dir string, router connfile.File) (*process, connfile.File, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, router, err
	}
	port, err := freePort()
	if err != nil {
		return nil, router, err
	}
	front := router
	front.Endpoints = []connfile.Endpoint{{Host: "127.0.0.1", Port: uint16(port)}}
	env := fmt.Sprintf("%s=%s %s", plainEnv, front.Endpoints[0].Address(), router.Endpoints[0].Address())
	p, err := startProcess("plain", dir, []string{env}, self)
	if err != nil {
		return nil, router, err
	}
	if err := p.await("listener", startup, func() bool { return listens(front) }); err != nil {
		p.kill()
		return nil, router, fmt.Errorf("plain relay: %w", err)
	}
	return p, front, nil
}

// relayPlainly serves until it is killed.
func relayPlainly(addresses string) error {
	var listen, router string
	if _, err := fmt.Sscan(addresses, &listen, &router); err != nil {
		return fmt.Errorf("%s: %w", plainEnv, err)
	}
	l, err := net.Listen("tcp4", listen)
	if err != nil {
		return err
	}
	for {
		down, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer down.Close()
			up, err := net.Dial("tcp4", router)
			if err != nil {
				return
			}
			defer up.Close()
			var both sync.WaitGroup
			both.Go(func() { copyPlainly(up.(*net.TCPConn), down) })
			both.Go(func() { copyPlainly(down.(*net.TCPConn), up) })
			both.Wait()
		}()
	}
}

// copyPlainly hides what the two can do beyond Read and Write: io.Copy would
// splice, which is slower for messages of this size.
func copyPlainly(to *net.TCPConn, from io.Reader) {
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, plainBuffer))
	_ = to.CloseWrite()
}
