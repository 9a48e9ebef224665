// Command stubrouter runs the stub router of package routertest as a process of
// its own that reads the real router's configuration, so that whatever starts
// that router, such as the oracle, can start this one in its place:
//
//	$XDG_CONFIG_HOME/cortexkit/subc.jsonc       read: port, modules, timeouts
//	$XDG_RUNTIME_DIR/subc-connection.json       written
//
// It ends at SIGTERM or SIGINT, and its modules with it.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
)

// configuration is what of the router's own the stub knows.
type configuration struct {
	Port        int               `json:"port"`
	BindTimeout int               `json:"route_bind_relay_timeout_ms"`
	Modules     map[string]module `json:"modules"`
}

type module struct {
	Program      string            `json:"program"`
	Args         []string          `json:"args"`
	Env          map[string]string `json:"env"`
	Enabled      bool              `json:"enabled"`
	Reserved     bool              `json:"reserved"`
	Overlap      string            `json:"overlap"`
	DrainTimeout *int              `json:"drain_timeout_ms"`
	BindTimeout  int               `json:"route_bind_relay_timeout_ms"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "stubrouter:", err)
		os.Exit(1)
	}
}

func run() error {
	c, err := read()
	if err != nil {
		return err
	}
	path := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), connfile.Name)
	processes := &spawner{path: path, live: map[uint32]*os.Process{}}
	defer processes.killAll()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM, unix.SIGINT)
	processes.ready.Add(1)
	router, err := routertest.NewRouter(routertest.Config{
		Addr: fmt.Sprintf("127.0.0.1:%d", c.Port), Path: path, Spawner: processes,
		Modules: c.roster(), BindTimeout: ms(c.BindTimeout), Rescan: rescan,
	})
	processes.router = router
	processes.ready.Done()
	if err != nil {
		return err
	}
	defer router.Close()
	<-stop
	return nil
}

func read() (configuration, error) {
	var c configuration
	text, err := os.ReadFile(filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "cortexkit", "subc.jsonc"))
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

func rescan() ([]routertest.ModuleConfig, error) {
	c, err := read()
	return c.roster(), err
}

func (c configuration) roster() []routertest.ModuleConfig {
	var all []routertest.ModuleConfig
	for id, m := range c.Modules {
		entry := routertest.ModuleConfig{
			ID: id, Disabled: !m.Enabled, Reserved: m.Reserved, OverlapSafe: m.Overlap == "safe",
			BindTimeout: ms(m.BindTimeout), Program: m.Program, Args: m.Args, Env: m.Env,
		}
		if m.DrainTimeout != nil {
			limit := ms(*m.DrainTimeout)
			entry.DrainTimeout = &limit
		}
		all = append(all, entry)
	}
	slices.SortFunc(all, func(a, b routertest.ModuleConfig) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return all
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
