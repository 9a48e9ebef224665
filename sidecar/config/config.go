package config

// Version is the only version of the file that is understood.
const Version = 1

// Config is the whole configuration. Paths are absolute once it is valid.
type Config struct {
	Version              int         `json:"version"`                // 1
	Router               Router      `json:"router"`                 // the router behind us
	Listen               string      `json:"listen"`                 // loopback address and port; port 0 takes a free one
	ConnectionFile       string      `json:"connection_file"`        // where ours is published; required
	ScopeAuthorityOwners []string    `json:"scope_authority_owners"` // module ids; contract, section 2; a change needs a restart
	Scopes               Scopes      `json:"scopes"`                 // who serves scope ops
	Heal                 bool        `json:"heal"`                   // restart the modules that our own end has stopped
	Attribution          Attribution `json:"attribution"`            // whose process is calling
	Operator             Operator    `json:"operator"`               // the operator's API
	Metrics              Metrics     `json:"metrics"`                // Prometheus
	Ledger               Ledger      `json:"ledger"`                 // the durable log of identities
	Log                  Log         `json:"log"`                    // what is written to standard error
}

// Router says where the router behind us publishes itself.
type Router struct {
	ConnectionFile string `json:"connection_file"` // default: the router's own discovery order
}

// Scopes says who serves scope ops.
type Scopes string

// The values of scopes.
const (
	ScopesAuto Scopes = "auto" // the router when it can serve all of scopes/v1, else us
	ScopesOwn  Scopes = "own"  // us, whatever the router says
	ScopesPass Scopes = "pass" // the router; scope ops pass through unchanged
)

// Attribution says what the process at the other end of a connection counts for.
type Attribution struct {
	Mode   AttributionMode `json:"mode"`
	Match  Match           `json:"match"`
	Cgroup string          `json:"cgroup"` // cgroup2 folder to attach to; "" is the root of the hierarchy
}

// AttributionMode says what a mismatch leads to.
type AttributionMode string

// The values of attribution.mode.
const (
	AttributionOff     AttributionMode = "off"     // PIDs are not looked at
	AttributionObserve AttributionMode = "observe" // a mismatch is logged and counted
	AttributionEnforce AttributionMode = "enforce" // a mismatch is refused
)

// Match says which processes count as a launch's own.
type Match string

// The values of attribution.match.
const (
	MatchExact Match = "exact" // the launched process
	MatchTree  Match = "tree"  // the launched process and its descendants
)

// Operator is the operator's API.
type Operator struct {
	Socket string `json:"socket"` // Unix socket; default: scopeward.sock beside connection_file
}

// Metrics is the Prometheus endpoint.
type Metrics struct {
	Listen string `json:"listen"` // loopback address and port; "" serves none
}

// Ledger is the durable log of identities.
type Ledger struct {
	Path       string `json:"path"`       // "" keeps none
	Tombstones bool   `json:"tombstones"` // an ended epoch stays ended across a restart
	WaitMS     int    `json:"wait_ms"`    // how long the answer to an accepted call waits for the disk at most, milliseconds
}

// Log is what is written to standard error.
type Log struct {
	Level  Level  `json:"level"` // SCOPEWARD_LOG overrides it
	Format Format `json:"format"`
}

// Level is the lowest level that is written.
type Level string

// The values of log.level.
const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// Format is how a line is written.
type Format string

// The values of log.format.
const (
	FormatAuto    Format = "auto"    // console on a terminal, else JSON
	FormatJSON    Format = "json"    // one object a line
	FormatConsole Format = "console" // for eyes
)

// Default is the configuration of an empty file. What depends on other keys or
// on the environment is still empty in it: router.connection_file and
// operator.socket.
func Default() Config {
	return Config{
		Version:              Version,
		Listen:               "127.0.0.1:0",
		ScopeAuthorityOwners: []string{"prefrontal-core"},
		Scopes:               ScopesAuto,
		Heal:                 true,
		Attribution:          Attribution{Mode: AttributionObserve, Match: MatchTree},
		Ledger:               Ledger{WaitMS: 5},
		Log:                  Log{Level: LevelInfo, Format: FormatAuto},
	}
}
