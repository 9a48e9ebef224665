package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/wire"
)

// startup bounds each step of a world's start.
const startup = 10 * time.Second

// routerEnv keeps a daemon away from everything outside its scratch folder.
func routerEnv(dir string) []string {
	at := func(name string) string { return filepath.Join(dir, name) }
	return []string{
		"XDG_CONFIG_HOME=" + at("cfg"), "XDG_RUNTIME_DIR=" + at("run"), "XDG_DATA_HOME=" + at("data"),
		"XDG_STATE_HOME=" + at("data"), "HOME=" + at("home"), "TMPDIR=" + at("data"),
		"PATH=/usr/bin:/bin", "RUST_LOG=warn",
	}
}

func routerFile(dir string) string { return filepath.Join(dir, "run", "subc-connection.json") }

// startRouter starts a router whose modules are puppets of this program.
func startRouter(dir, binary, socket string, scopes bool) (*process, connfile.File, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, connfile.File{}, err
	}
	// A port found free may be taken before the router has it.
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return nil, connfile.File{}, err
		}
		config := routerConfig(self, socket, port, scopes)
		if err := os.WriteFile(filepath.Join(dir, "cfg", "cortexkit", "subc.jsonc"), config, 0o600); err != nil {
			return nil, connfile.File{}, err
		}
		p, err := startProcess("router", dir, routerEnv(dir), binary)
		if err != nil {
			return nil, connfile.File{}, err
		}
		file, err := awaitFile(p, routerFile(dir))
		if err == nil {
			return p, file, nil
		}
		p.kill()
		if try == 3 || !strings.Contains(p.tail(), "in use") {
			return nil, file, fmt.Errorf("router: %w", err)
		}
	}
}

func routerConfig(program, socket string, port int, scopes bool) []byte {
	modules := object{}
	for _, name := range moduleNames() {
		modules[name] = object{
			"program": program, "args": []string{}, "env": object{socketEnv: socket},
			"enabled": true, "reserved": false, "drain_timeout_ms": 500,
			"health": object{"cadence_ms": time.Hour.Milliseconds()},
		}
	}
	config := object{"version": 1, "port": port, "modules": modules}
	if scopes {
		config["scope_authority_owners"] = authorityOwners()
	}
	return wire.MustMarshal(config)
}

func authorityOwners() []string { return []string{moduleOwner, moduleSmall} }

// awaitFile waits for a daemon's connection file.
func awaitFile(p *process, path string) (file connfile.File, err error) {
	err = p.await("connection file", startup, func() bool {
		var bad error
		file, bad = connfile.Read(path)
		return bad == nil
	})
	return file, err
}

// freePort finds a loopback port that nobody listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
