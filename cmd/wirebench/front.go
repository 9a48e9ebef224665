package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/wire"
)

// startHAProxy puts HAProxy in front of a router, as its own defaults have it:
// it passes bytes and so keeps the router's key.
func startHAProxy(dir, binary string, router connfile.File) (*process, connfile.File, error) {
	port, err := freePort()
	if err != nil {
		return nil, router, err
	}
	config := fmt.Sprintf(`global
  nbthread 2
  maxconn 8000
defaults
  mode tcp
  maxconn 8000
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend front
  bind 127.0.0.1:%d
  default_backend router
backend router
  server router %s
`, port, router.Endpoints[0].Address())
	path := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, router, err
	}
	p, err := startProcess("haproxy", dir, nil, binary, "-db", "-f", path)
	if err != nil {
		return nil, router, err
	}
	front := router
	front.Endpoints = []connfile.Endpoint{{Host: "127.0.0.1", Port: uint16(port)}}
	if err := p.await("listener", startup, func() bool { return listens(front) }); err != nil {
		p.kill()
		return nil, router, fmt.Errorf("haproxy: %w", err)
	}
	return p, front, nil
}

func listens(f connfile.File) bool {
	c, err := net.DialTimeout("tcp4", f.Endpoints[0].Address(), time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// startSidecar puts scopeward in front of a router. Attribution is off: the
// modules' connections come from this process and not from their launches.
func startSidecar(dir, binary string, router connfile.File) (*process, connfile.File, error) {
	side := filepath.Join(dir, "side")
	published := filepath.Join(side, "connection.json")
	config := wire.MustMarshal(object{
		"version": 1, "router": object{"connection_file": routerFile(dir)},
		"listen": "127.0.0.1:0", "connection_file": published,
		"scope_authority_owners": authorityOwners(), "attribution": object{"mode": "off"},
	})
	path := filepath.Join(side, "config.jsonc")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return nil, router, err
	}
	p, err := startProcess("scopeward", dir, routerEnv(dir), binary, "run", "--config", path)
	if err != nil {
		return nil, router, err
	}
	front, err := awaitFile(p, published)
	if err != nil {
		p.kill()
		return nil, router, fmt.Errorf("scopeward: %w", err)
	}
	return p, front, nil
}
