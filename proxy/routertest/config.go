package routertest

import "time"

// The existing router's limits and periods. Config changes them for a test.
const (
	DefaultVersion      = "0.24.0"
	DefaultBindTimeout  = 12 * time.Second
	DefaultDrainTimeout = 30 * time.Second
	DefaultReadyTimeout = 100 * time.Second

	// BreakerThreshold binds in a row that nobody answers open a module's breaker
	// for BreakerCooldown.
	BreakerThreshold = 3
	BreakerCooldown  = 20 * time.Second

	// MaxOpens is how many opens of one client connection may be in flight.
	MaxOpens = 8
	// MaxBinds is how many binds to one module may be in flight.
	MaxBinds = 16
	// MaxQueued is how many bytes may wait for one connection. A client that lets
	// more pile up is closed; a module's senders wait.
	MaxQueued = 4 << 20
	// SpawnRing is how many spawn events are kept for a subscriber's cursor.
	SpawnRing = 4096
	// RequestWindow is how many requests may be in flight on one route.
	RequestWindow = 32

	maxRestarts    = 3
	restartWindow  = 600 * time.Second
	restartBackoff = 100 * time.Millisecond
	maxBackoff     = 30 * time.Second
	releaseTimeout = time.Second
	orphanInterval = 5 * time.Second
)

// Config describes a stub router. The zero value is one with no configured
// module, listening on a free loopback port.
type Config struct {
	Version string         // daemon_ver; DefaultVersion when empty
	Modules []ModuleConfig // the roster
	Spawner Spawner        // starts the enabled modules' processes; nil: they are launched by hand

	// Rescan is the roster as it is configured now, for supervisor.rescan; nil
	// refuses it. It is called under the router's lock.
	Rescan func() ([]ModuleConfig, error)

	// Addr is the loopback address to listen on; a free port when empty.
	Addr string
	// Path is where the connection file is written; in a folder of its own when
	// empty.
	Path string
	// InMemory: no port and no file. Connections come by ServeConn and Pipe.
	InMemory bool

	BindTimeout  time.Duration // DefaultBindTimeout when zero
	DrainTimeout time.Duration // DefaultDrainTimeout when zero
	SpawnRing    int           // SpawnRing when zero
}

// ModuleConfig is one configured module.
type ModuleConfig struct {
	ID           string
	Disabled     bool
	Reserved     bool           // a Hello needs the current launch's nonce
	OverlapSafe  bool           // may be swapped
	DrainTimeout *time.Duration // nil: the router's
	BindTimeout  time.Duration  // zero: the router's

	// For a Spawner alone.
	Program string
	Args    []string
	Env     map[string]string
}

func (c Config) withDefaults() Config {
	if c.Version == "" {
		c.Version = DefaultVersion
	}
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if c.BindTimeout == 0 {
		c.BindTimeout = DefaultBindTimeout
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrainTimeout
	}
	if c.SpawnRing == 0 {
		c.SpawnRing = SpawnRing
	}
	return c
}
