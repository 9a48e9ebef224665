package e2e

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

// module is one entry of the router's configuration.
type module struct {
	program  string   // a program of deploy/realrouter, or an absolute path
	args     []string // before the router's own --subc FILE
	env      map[string]string
	direct   bool // not behind `scopeward exec`: it dials the router itself
	overlap  bool // may be swapped blue/green
	disabled bool
}

// world is one scratch folder with a router, a sidecar and the router's modules.
type world struct {
	t       *testing.T
	dir     string
	bin     string // the real router's programs
	program string // the router
	port    int    // the router's
	modules map[string]module
	mode    string   // attribution.mode
	owners  []string // scope_authority_owners

	metricsAddr string // metrics.listen; "" serves none
	watched     string // a sidecar built with -tags watched; "": the usual one

	router  *process
	sidecar *process
}

const idOwner = "prefrontal-core"

// newWorld makes a world and starts nothing.
func newWorld(t *testing.T, modules map[string]module) *world {
	t.Helper()
	bin := programs(t)
	return newWorldWith(t, bin, filepath.Join(bin, progRouter), modules)
}

// newStubWorld makes a world whose router is the stub router, in a process of
// its own. Its modules are the test binary: it needs nothing of the real router.
func newStubWorld(t *testing.T, modules map[string]module) *world {
	t.Helper()
	return newWorldWith(t, "", built(t, &stubBuild, "stubrouter", "../../.ci/stubrouter"), modules)
}

func newWorldWith(t *testing.T, bin, program string, modules map[string]module) *world {
	t.Helper()
	w := &world{
		t: t, bin: bin, program: program, port: routertest.FreePort(t), modules: modules,
		mode: "observe", owners: []string{idOwner},
	}
	var err error
	w.dir, err = os.MkdirTemp("", "scopeward-e2e")
	require.NoError(t, err)
	for _, d := range []string{"cfg/cortexkit", "run", "data", "home", "side", "events", "project"} {
		require.NoError(t, os.MkdirAll(w.path(d), 0o700))
	}
	t.Cleanup(w.cleanup)
	w.configure()
	return w
}

// cleanup ends what runs and removes the folder, unless the test failed.
func (w *world) cleanup() {
	w.sidecar.stop(syscall.SIGKILL, patience)
	w.router.stop(syscall.SIGKILL, patience)
	killMarked(w.path("home"))
	if w.sidecar != nil && bytes.Contains(w.sidecar.output(), []byte("WARNING: DATA RACE")) {
		w.t.Error("the sidecar has a data race")
	}
	if w.t.Failed() {
		w.t.Logf("the world is kept in %s", w.dir)
		w.tail(w.router)
		w.tail(w.sidecar)
		return
	}
	os.RemoveAll(w.dir)
}

func (w *world) tail(p *process) {
	if p == nil {
		return
	}
	b, _ := os.ReadFile(p.log)
	if len(b) > 4000 {
		b = b[len(b)-4000:]
	}
	w.t.Logf("%s log ends:\n%s", p.name, b)
}

func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}

// routerFile is the router's connection file, frontFile the sidecar's.
func (w *world) routerFile() string { return w.path("run/subc-connection.json") }
func (w *world) frontFile() string  { return w.path("side/scopeward-connection.json") }

// events is the file where a module writes what it saw.
func (w *world) events(id string) string { return w.path("events", id+".jsonl") }

// script is the file with a scope owner's steps.
func (w *world) script(id string) string { return w.path("events", id+".script") }

func (w *world) configure() {
	w.t.Helper()
	modules := object{}
	for id, m := range w.modules {
		program := m.program
		if !filepath.IsAbs(program) {
			program = filepath.Join(w.bin, program)
		}
		args := append([]string{}, m.args...)
		if !m.direct {
			args = append([]string{"exec", "--connection-file", w.frontFile(), "--", program}, args...)
			program = scopeward(w.t)
		}
		env := object{
			"SUBC_MODULE_ECHO_EVENTS": w.events(id),
			"SUBC_SCOPE_OWNER_SCRIPT": w.script(id), "SUBC_SCOPE_OWNER_RESULTS": w.events(id),
			"CARRIER_EVENTS": w.events(id), "OLDMODULE_EVENTS": w.events(id),
			"HOME": w.path("home"),
		}
		for k, v := range m.env {
			env[k] = v
		}
		doc := object{"program": program, "args": args, "env": env, "enabled": !m.disabled, "reserved": false, "drain_timeout_ms": 500}
		if m.overlap {
			doc["overlap"] = "safe"
		}
		modules[id] = doc
		if m.program == progOwner {
			w.play(id)
		}
	}
	config := object{"version": 1, "port": w.port, "modules": modules}
	w.write(w.path("cfg/cortexkit/subc.jsonc"), wire.MustMarshal(config))
	w.write(w.path("side/config.jsonc"), wire.MustMarshal(object{
		"version": 1, "router": object{"connection_file": w.routerFile()}, "listen": "127.0.0.1:0",
		"connection_file": w.frontFile(), "scope_authority_owners": w.owners,
		"attribution": object{"mode": w.mode}, "metrics": object{"listen": w.metricsAddr},
	}))
}

// play gives the scope owner id the steps that its next launch runs.
func (w *world) play(id string, steps ...object) {
	w.t.Helper()
	w.write(w.script(id), wire.MustMarshal(append([]object{}, steps...)))
}

func (w *world) write(path string, content []byte) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(path+".new", content, 0o600))
	require.NoError(w.t, os.Rename(path+".new", path))
}

func (w *world) env() []string {
	return []string{
		"XDG_CONFIG_HOME=" + w.path("cfg"), "XDG_RUNTIME_DIR=" + w.path("run"), "XDG_DATA_HOME=" + w.path("data"),
		"XDG_STATE_HOME=" + w.path("data"), "HOME=" + w.path("home"), "TMPDIR=" + w.path("data"),
		"PATH=/usr/bin:/bin", "RUST_LOG=info", "SCOPEWARD_LOG=debug",
	}
}

// startRouter starts the router and waits for its file.
func (w *world) startRouter() {
	w.t.Helper()
	os.Remove(w.routerFile())
	w.launchRouter()
	w.waitDial(w.routerFile(), w.router)
}

// launchRouter starts the router and waits for nothing.
func (w *world) launchRouter() {
	w.t.Helper()
	w.router = startProcess(w.t, "router", w.dir, w.env(), w.program)
}

// launchSidecar starts the sidecar and waits for nothing.
func (w *world) launchSidecar() {
	w.t.Helper()
	program := w.watched
	if program == "" {
		program = scopeward(w.t)
	}
	w.sidecar = startProcess(w.t, "sidecar", w.dir, w.env(), program, "run", "--config", w.path("side/config.jsonc"))
}

// startSidecar starts the sidecar and waits until it serves.
func (w *world) startSidecar() {
	w.t.Helper()
	w.launchSidecar()
	w.waitDial(w.frontFile(), w.sidecar)
}

// start starts router and sidecar and waits until every enabled module is
// registered.
func (w *world) start() {
	w.t.Helper()
	w.startRouter()
	w.startSidecar()
	w.waitModules(patience)
}

// waitDial waits until the daemon of the file at path takes connections.
func (w *world) waitDial(path string, p *process) {
	w.t.Helper()
	within(w.t, patience, "a connection through "+path, func() bool {
		require.False(w.t, p.ended(), "%s ended: %s", p.name, lastLines(p.output()))
		conn, err := dialFile(path)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

// waitModules waits until every enabled module is registered.
func (w *world) waitModules(limit time.Duration) {
	w.t.Helper()
	within(w.t, limit, "every module's registration", w.registered)
}

// registered reports whether every enabled module is.
func (w *world) registered() bool {
	conn, err := dialFile(w.routerFile())
	if err != nil {
		return false
	}
	defer conn.Close()
	listed := askOnce(conn, object{"op": wire.OpCatalogList})
	for id, m := range w.modules {
		if !m.disabled && !bytes.Contains(listed, []byte(`"module_id":"`+id+`"`)) {
			return false
		}
	}
	return true
}

// exchange sends one frame on a connection that nothing else uses and returns
// the frame that answers it.
func exchange(conn net.Conn, h wire.Header, body []byte) (wire.Frame, error) {
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write(wire.AppendFrame(nil, h, body)); err != nil {
		return wire.Frame{}, err
	}
	for {
		f, err := wire.ReadFrame(conn)
		if err != nil || f.Corr == h.Corr && (f.Type == wire.Response || f.Type == wire.Error) {
			return f, err
		}
	}
}

// askOnce sends one control request and returns its answer's body, nil when
// none came.
func askOnce(conn net.Conn, body object) []byte {
	f, err := exchange(conn, wire.Header{Corr: 1}, wire.MustMarshal(body))
	if err != nil {
		return nil
	}
	return f.Body
}

// client connects to the sidecar, admin to the router itself.
func (w *world) client() *link { w.t.Helper(); return newLink(w.t, w.frontFile(), nil) }
func (w *world) admin() *link  { w.t.Helper(); return newLink(w.t, w.routerFile(), nil) }

// identity is a bind identity of this world.
func (w *world) identity() object {
	return object{"project_root": w.path("project"), "harness": "e2e", "session": "s1"}
}

// opening is a route.open to the tool provider id.
func (w *world) opening(id string) object {
	return object{"op": wire.OpRouteOpen, "target": object{"kind": "tool_provider", "module_id": id}, "identity": w.identity()}
}

// scoped is a route.open to the tool provider id under a scope of the owner.
func (w *world) scoped(id, ref string, epoch uint64) object {
	o := w.opening(id)
	o["scope"] = selector(ref, epoch)
	return o
}

func selector(ref string, epoch uint64) object {
	return object{"owner": reserved(idOwner), "ref": ref, "scope_epoch": epoch}
}

func reserved(id string) object { return object{"kind": "reserved", "module_id": id} }

// within waits for cond and fails the test when it does not come true in time.
func within(t *testing.T, limit time.Duration, what string, cond func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Since(start) > limit {
			require.Failf(t, "out of time", "waited %v for %s", limit, what)
		}
		<-tick.C
	}
	return time.Since(start)
}

func lastLines(b []byte) string {
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}
