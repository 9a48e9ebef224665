package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Problem is what is wrong with one key's value.
type Problem struct {
	Key  string // dotted
	What string // follows the key in a sentence and ends with the remedy
}

// maxSocketPath is the longest path of a Unix socket in bytes, its terminator
// left out.
const maxSocketPath = 107

// Validate returns the first problem in the order of the keys, nil when there
// is none. It looks at the file system only to resolve links in the two
// connection files' paths.
func (c *Config) Validate() *Problem {
	for _, check := range []func() *Problem{
		c.checkVersion, c.checkRouter, c.checkListen, c.checkConnectionFile, c.checkOwners,
		c.checkChoices, c.checkCgroup, c.checkSocket, c.checkMetrics, c.checkLedger,
	} {
		if p := check(); p != nil {
			return p
		}
	}
	return nil
}

func (c *Config) checkVersion() *Problem {
	if c.Version != Version {
		return &Problem{"version", fmt.Sprintf("is %d: this scopeward reads version %d only", c.Version, Version)}
	}
	return nil
}

func (c *Config) checkRouter() *Problem {
	if c.Router.ConnectionFile == "" {
		return &Problem{"router.connection_file", "is not set, and neither SUBC_CONNECTION_FILE, XDG_RUNTIME_DIR nor HOME tells where the router publishes: set it"}
	}
	return absolute("router.connection_file", c.Router.ConnectionFile)
}

func (c *Config) checkListen() *Problem { return loopback("listen", c.Listen) }

func (c *Config) checkConnectionFile() *Problem {
	const key = "connection_file"
	if c.ConnectionFile == "" {
		return &Problem{key, "is not set: name the file that modules and clients shall read in place of the router's"}
	}
	if p := absolute(key, c.ConnectionFile); p != nil {
		return p
	}
	if Resolve(c.ConnectionFile) == Resolve(c.Router.ConnectionFile) {
		return &Problem{key, fmt.Sprintf("is the router's own file %s: choose another path", quote(c.Router.ConnectionFile))}
	}
	return nil
}

func (c *Config) checkOwners() *Problem {
	const key = "scope_authority_owners"
	for i, owner := range c.ScopeAuthorityOwners {
		if owner == "" || strings.ContainsFunc(owner, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return &Problem{key, fmt.Sprintf("holds %s, which is no module id: remove it", quote(owner))}
		}
		if slices.Contains(c.ScopeAuthorityOwners[:i], owner) {
			return &Problem{key, fmt.Sprintf("holds %s twice: remove one", quote(owner))}
		}
	}
	return nil
}

func (c *Config) checkChoices() *Problem {
	for _, p := range []*Problem{
		choice("scopes", c.Scopes, ScopesAuto, ScopesOwn, ScopesPass),
		choice("attribution.mode", c.Attribution.Mode, AttributionOff, AttributionObserve, AttributionEnforce),
		choice("attribution.match", c.Attribution.Match, MatchExact, MatchTree),
		choice("log.level", c.Log.Level, LevelDebug, LevelInfo, LevelWarn, LevelError),
		choice("log.format", c.Log.Format, FormatAuto, FormatJSON, FormatConsole),
	} {
		if p != nil {
			return p
		}
	}
	return nil
}

func (c *Config) checkCgroup() *Problem {
	if c.Attribution.Cgroup == "" {
		return nil
	}
	return absolute("attribution.cgroup", c.Attribution.Cgroup)
}

func (c *Config) checkSocket() *Problem {
	const key = "operator.socket"
	if p := absolute(key, c.Operator.Socket); p != nil {
		return p
	}
	switch s := filepath.Clean(c.Operator.Socket); {
	case s == filepath.Clean(c.ConnectionFile) || s == filepath.Clean(c.Router.ConnectionFile):
		return &Problem{key, "is a connection file: choose another path"}
	case len(s) > maxSocketPath:
		return &Problem{key, fmt.Sprintf("is %d bytes long and a Unix socket's path can have %d: choose a shorter one", len(s), maxSocketPath)}
	}
	return nil
}

func (c *Config) checkMetrics() *Problem {
	if c.Metrics.Listen == "" {
		return nil
	}
	return loopback("metrics.listen", c.Metrics.Listen)
}

// maxLedgerWait is the most that ledger.wait_ms can be: what an owner that waits
// for an answer hardly notices.
const maxLedgerWait = 1000

func (c *Config) checkLedger() *Problem {
	if w := c.Ledger.WaitMS; w < 1 || w > maxLedgerWait {
		return &Problem{"ledger.wait_ms", fmt.Sprintf("is %d: give milliseconds from 1 to %d", w, maxLedgerWait)}
	}
	if c.Ledger.Path == "" {
		if c.Ledger.Tombstones {
			return &Problem{"ledger.tombstones", `needs the ledger: set "ledger.path" too`}
		}
		return nil
	}
	return absolute("ledger.path", c.Ledger.Path)
}

func choice[T ~string](key string, got T, allowed ...T) *Problem {
	if slices.Contains(allowed, got) {
		return nil
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = fmt.Sprintf("%q", string(a))
	}
	list := strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
	return &Problem{key, fmt.Sprintf("is %s: use %s", quote(string(got)), list)}
}

func absolute(key, path string) *Problem {
	if strings.ContainsRune(path, 0) || !filepath.IsAbs(path) {
		return &Problem{key, fmt.Sprintf("is %s: give an absolute path", quote(path))}
	}
	return nil
}

func loopback(key, addr string) *Problem {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return &Problem{key, fmt.Sprintf("is %s: give an address and a port such as \"127.0.0.1:0\"", quote(addr))}
	}
	if !ap.Addr().IsLoopback() || ap.Addr().Zone() != "" {
		return &Problem{key, fmt.Sprintf("is %s, which others can reach: use a loopback address such as 127.0.0.1", quote(addr))}
	}
	return nil
}

// Resolve returns path with its links resolved as far as it exists, a link to
// what does not exist yet included. Two paths that resolve alike are one file,
// now or once it is written.
func Resolve(path string) string { return resolve(path, 32) }

func resolve(path string, links int) string {
	path = filepath.Clean(path)
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	dir, base := filepath.Split(path)
	if base == "" || links == 0 {
		return path
	}
	dir = resolve(dir, links)
	path = filepath.Join(dir, base)
	to, err := os.Readlink(path)
	if err != nil {
		return path
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	return resolve(to, links-1)
}

// quote cuts what a file says to a readable length.
func quote(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	return fmt.Sprintf("%q", s)
}
