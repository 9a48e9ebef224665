package connfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scopeward/proxy/handshake"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

func testFile() File {
	f := File{
		Endpoints: []Endpoint{{"127.0.0.1", 8933}},
		PID:       1234,
		DaemonVer: "0.24.0",
	}
	for i := range handshake.MinKey {
		f.Key = append(f.Key, byte(200+i))
	}
	for i := range handshake.DaemonIDLen {
		f.DaemonID = append(f.DaemonID, byte(i))
	}
	return f
}

func mustPublish(t *testing.T, path string, f File) {
	t.Helper()
	require.NoError(t, Publish(path, f))
}

func TestPublishedFileHasExactlyTheMembersAndReadsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "deep", Name)
	f := testFile()
	mustPublish(t, path, f)

	got, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, f, got)

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, json.Unmarshal(data, &members))
	var names []string
	for name := range members {
		names = append(names, name)
	}
	require.ElementsMatch(t, []string{"schema", "wire_version", "endpoints", "key", "daemon_id", "pid", "daemon_ver"}, names)
	require.EqualValues(t, 1, members["schema"])
	require.EqualValues(t, 2, members["wire_version"])
	require.Len(t, members["key"], 32)
	require.EqualValues(t, 200, members["key"].([]any)[0])

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	require.Equal(t, []string{Name}, list(t, filepath.Dir(path)), "nothing temporary is left")
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestPublishIgnoresTheUmask(t *testing.T) {
	old := syscall.Umask(0o777)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), Name)
	// TempDir itself was made under the umask.
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o700))
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(path)), 0o700))
	mustPublish(t, path, testFile())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}

func TestPublishReplacesALinkAndNotItsTarget(t *testing.T) {
	dir := t.TempDir()
	path, target := filepath.Join(dir, Name), filepath.Join(dir, "router.json")
	require.NoError(t, os.WriteFile(target, []byte("router"), 0o600))
	require.NoError(t, os.Symlink(target, path))
	mustPublish(t, path, testFile())
	data, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "router", string(data))
}

func TestPublishRefusesAFolderThatOthersMayWrite(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	path := filepath.Join(open, "closed", Name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.Chmod(open, 0o777))
	err := Publish(path, testFile())
	require.ErrorIs(t, err, ErrInsecure)
	require.ErrorContains(t, err, open)
	requireOneLine(t, err)
	require.NoFileExists(t, path)

	require.NoError(t, os.Chmod(open, 0o777|fs.ModeSticky))
	mustPublish(t, path, testFile())

	// A link does not hide the folder it leads through.
	require.NoError(t, os.Chmod(open, 0o777))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Dir(path), link))
	err = Publish(filepath.Join(link, Name), testFile())
	require.ErrorIs(t, err, ErrInsecure)
	require.ErrorContains(t, err, open)
	require.NoError(t, os.Chmod(open, 0o700))
	mustPublish(t, filepath.Join(link, Name), testFile())
}

func requireOneLine(t *testing.T, err error) {
	t.Helper()
	require.NotContains(t, err.Error(), "\n")
	requireNoKey(t, err.Error())
}

// requireNoKey looks for the test key's first two bytes side by side, in the forms
// that bytes are printed in. One byte alone proves nothing: a path holds such digits.
func requireNoKey(t *testing.T, s string) {
	t.Helper()
	for _, form := range []string{"200 201", "200,201", "200, 201", "c8c9", "c8, 0xc9", "\xc8\xc9", `\xc8\xc9`, "yMnK"} {
		require.NotContains(t, s, form)
	}
}

func TestReadJudgesTheOpenedFile(t *testing.T) {
	dir := t.TempDir()
	cases := []struct {
		name string
		make func(path string) error
		is   error
		says string
	}{
		{"missing", func(string) error { return nil }, fs.ErrNotExist, "start the router"},
		{"group", func(p string) error { return os.WriteFile(p, testFile().Append(nil), 0o640) }, ErrInsecure, "chmod 600"},
		{"world", func(p string) error { return os.WriteFile(p, testFile().Append(nil), 0o604) }, ErrInsecure, "chmod 600"},
		{"folder", func(p string) error { return os.Mkdir(p, 0o700) }, ErrMalformed, "regular"},
		{"pipe", func(p string) error { return syscall.Mkfifo(p, 0o600) }, ErrMalformed, "regular"},
		{"link", func(p string) error {
			if err := os.WriteFile(p+".real", testFile().Append(nil), 0o644); err != nil {
				return err
			}
			return os.Symlink(p+".real", p)
		}, ErrInsecure, "chmod 600"},
		{"huge", func(p string) error { return os.WriteFile(p, make([]byte, maxSize+1), 0o600) }, ErrMalformed, "1 MiB"},
		{"empty", func(p string) error { return os.WriteFile(p, nil, 0o600) }, ErrMalformed, "parse"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, c.name)
			require.NoError(t, c.make(path))
			_, err := Read(path)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, path)
			requireOneLine(t, err)
		})
	}
}

func TestReadRefusesAnotherUsersFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving a file to another user needs root")
	}
	path := filepath.Join(t.TempDir(), Name)
	mustPublish(t, path, testFile())
	require.NoError(t, os.Chown(path, 12345, 12345))
	_, err := Read(path)
	require.ErrorIs(t, err, ErrInsecure)
	require.ErrorContains(t, err, "12345")

	require.NoError(t, os.Chown(filepath.Dir(path), 12345, 12345))
	require.ErrorIs(t, Publish(path, testFile()), ErrInsecure)
}

func TestParse(t *testing.T) {
	with := func(edit func(m map[string]any)) string {
		var m map[string]any
		require.NoError(t, json.Unmarshal(testFile().Append(nil), &m))
		edit(m)
		b, err := json.Marshal(m)
		require.NoError(t, err)
		return string(b)
	}
	numbers := func(n int, v float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = v
		}
		return out
	}
	accepted := map[string]func(m map[string]any){
		"no wire_version":   func(m map[string]any) { delete(m, "wire_version") },
		"null wire_version": func(m map[string]any) { m["wire_version"] = nil },
		"unknown members":   func(m map[string]any) { m["local_endpoint"] = map[string]any{"path": "/x"} },
		"a longer key":      func(m map[string]any) { m["key"] = numbers(64, 7) },
	}
	for name, edit := range accepted {
		t.Run(name, func(t *testing.T) {
			f, err := Parse([]byte(with(edit)))
			require.NoError(t, err)
			require.Equal(t, testFile().DaemonID, f.DaemonID)
		})
	}
	refused := map[string]func(m map[string]any){
		"schema 2":        func(m map[string]any) { m["schema"] = 2 },
		"no schema":       func(m map[string]any) { delete(m, "schema") },
		"wire_version 1":  func(m map[string]any) { m["wire_version"] = 1 },
		"no endpoints":    func(m map[string]any) { m["endpoints"] = []any{} },
		"port 0":          func(m map[string]any) { m["endpoints"] = []any{map[string]any{"host": "127.0.0.1", "port": 0}} },
		"no host":         func(m map[string]any) { m["endpoints"] = []any{map[string]any{"port": 1}} },
		"key of 31":       func(m map[string]any) { m["key"] = numbers(31, 1) },
		"key string":      func(m map[string]any) { m["key"] = strings.Repeat("a", 44) },
		"key over 255":    func(m map[string]any) { m["key"] = numbers(32, 256) },
		"key negative":    func(m map[string]any) { m["key"] = numbers(32, -1) },
		"key fraction":    func(m map[string]any) { m["key"] = numbers(32, 1.5) },
		"daemon_id of 15": func(m map[string]any) { m["daemon_id"] = numbers(15, 1) },
		"daemon_id of 17": func(m map[string]any) { m["daemon_id"] = numbers(17, 1) },
		"daemon_id 256":   func(m map[string]any) { m["daemon_id"] = numbers(16, 256) },
		"no pid":          func(m map[string]any) { delete(m, "pid") },
		"no daemon_ver":   func(m map[string]any) { delete(m, "daemon_ver") },
	}
	for name, edit := range refused {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(with(edit)))
			require.Error(t, err)
			require.True(t, errors.Is(err, ErrMalformed) != errors.Is(err, ErrWireVersion))
			requireOneLine(t, err)
		})
	}
}

func TestKeyIsNeverPrinted(t *testing.T) {
	f := testFile()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		for _, v := range []any{f, &f, f.Key, []Secret{f.Key}} {
			s := fmt.Sprintf(verb, v)
			requireNoKey(t, s)
			require.NotContains(t, s, "200", verb)
			require.Contains(t, s, redacted, verb)
		}
	}
	b, err := json.Marshal(f.Key)
	require.NoError(t, err)
	require.Equal(t, `"[secret]"`, string(b))
}

func TestRemoveTakesOnlyWhatIsOurs(t *testing.T) {
	path := filepath.Join(t.TempDir(), Name)
	ours, other := testFile(), testFile()
	other.DaemonID = []byte("another daemon's")

	removed, err := Remove(path, ours)
	require.NoError(t, err)
	require.False(t, removed)

	mustPublish(t, path, other)
	removed, err = Remove(path, ours)
	require.NoError(t, err)
	require.False(t, removed)
	require.FileExists(t, path)

	mustPublish(t, path, ours)
	removed, err = Remove(path, ours)
	require.NoError(t, err)
	require.True(t, removed)
	require.NoFileExists(t, path)
}

func TestSecondLockIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), Name)
	l, err := TakeLock(path)
	require.NoError(t, err)
	_, err = TakeLock(path)
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, fmt.Sprintf("pid %d", os.Getpid()))
	requireOneLine(t, err)
	require.NoError(t, l.Release())
	l, err = TakeLock(path)
	require.NoError(t, err)
	require.NoError(t, l.Release())
}

func TestDiscoverOrder(t *testing.T) {
	dir := t.TempDir()
	run, home := filepath.Join(dir, "run"), filepath.Join(dir, "home")
	inRun := filepath.Join(run, Name)
	inHome := filepath.Join(home, ".local/share/cortexkit/run", Name)
	env := map[string]string{}
	find := func() string { return Discover(func(k string) string { return env[k] }) }

	require.Empty(t, find())
	env["HOME"] = home
	require.Equal(t, inHome, find())
	env["XDG_RUNTIME_DIR"] = run
	require.Equal(t, inRun, find(), "nothing exists: the router will write here")
	mustPublish(t, inHome, testFile())
	require.Equal(t, inHome, find(), "the first that exists")
	mustPublish(t, inRun, testFile())
	require.Equal(t, inRun, find())
	env[EnvFile] = "/nowhere/at/all"
	require.Equal(t, "/nowhere/at/all", find(), "named: nothing else is looked at")
}

func TestDialPassesOverADeadEndpointAndShakesHands(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dead, err := net.Listen("tcp", "127.0.0.2:0") // where nobody else listens
	require.NoError(t, err)
	f := testFile()
	port := func(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }
	f.Endpoints = []Endpoint{{"127.0.0.2", port(dead)}, {"127.0.0.1", port(l)}}
	require.NoError(t, dead.Close())

	roles := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		hello, err := handshake.Server(c, handshake.Params{Key: f.Key, DaemonID: f.DaemonID, DaemonVer: "x"})
		if err == nil {
			c.Write([]byte("frames"))
		}
		roles <- hello.Role
	}()
	conn, err := Dial(t.Context(), f, "client")
	require.NoError(t, err)
	defer conn.Close()
	rest, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "frames", string(rest))
	require.Equal(t, "client", <-roles)

	f.Endpoints = f.Endpoints[:1]
	_, err = Dial(t.Context(), f, "client")
	require.ErrorIs(t, err, ErrNoEndpoint)
}

func TestDialOfASilentServerEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	f := testFile()
	f.Endpoints = []Endpoint{{"127.0.0.1", uint16(l.Addr().(*net.TCPAddr).Port)}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			heard <- err
			return
		}
		defer c.Close()
		_, err = c.Read(make([]byte, 1)) // it waits for an answer from here on
		cancel()
		_, _ = io.Copy(io.Discard, c) // until it hangs up
		heard <- err
	}()
	_, err = Dial(ctx, f, "client")
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, <-heard)
}

func FuzzParse(f *testing.F) {
	f.Add(testFile().Append(nil))
	f.Add([]byte(`{"schema":1,"endpoints":[],"key":[1.0],"daemon_id":[]}`))
	f.Add([]byte(`[1,2,[{"host":"h","port":1}],[],[],1,"v"]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			require.True(t, errors.Is(err, ErrMalformed) || errors.Is(err, ErrWireVersion), err)
			return
		}
		require.GreaterOrEqual(t, len(file.Key), handshake.MinKey)
		require.Len(t, file.DaemonID, handshake.DaemonIDLen)
		again, err := Parse(file.Append(nil))
		require.NoError(t, err)
		require.Equal(t, file, again)
	})
}
