package wrapper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
)

// The test binary is its own helper: as "exec" it becomes, by way of this
// package, the program that it also is.
const envRole = "WRAPPER_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(envRole) {
	case "exec":
		asExec()
	case "program":
		asProgram()
	default:
		goleak.VerifyTestMain(m)
	}
}

func asExec() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	file := os.Args[1]
	os.Setenv(envRole, "program")
	err := Await(ctx, file, func(why string) { fmt.Fprintln(os.Stderr, "waiting:", why) })
	if err == nil {
		args, env := Rewrite(os.Args[2:], os.Environ(), file)
		err = Exec(os.Args[2], args, env)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// report is what the program found.
type report struct {
	PID   int
	Args  []string
	File  string
	Other string
	Third string // what stood in descriptor 3
}

func asProgram() {
	third, _ := io.ReadAll(os.NewFile(3, "3"))
	r := report{os.Getpid(), os.Args[1:], os.Getenv(connfile.EnvFile), os.Getenv("OTHER"), string(third)}
	if err := json.MarshalWrite(os.Stdout, r); err != nil {
		os.Exit(1)
	}
}

func TestThePIDAndDescriptorThreeAndTheEnvironmentStayTheLaunchs(t *testing.T) {
	front := filepath.Join(t.TempDir(), "front.json")
	self, err := os.Executable()
	require.NoError(t, err)
	nonce, give, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(self, front, self, "first", "--subc", "/router.json", "--subc=/router.json", "last")
	cmd.Env = append(os.Environ(), envRole+"=exec", connfile.EnvFile+"=/router.json", "OTHER=kept")
	cmd.ExtraFiles = []*os.File{nonce}
	var said, out strings.Builder
	cmd.Stderr, cmd.Stdout = &said, &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	_, err = io.WriteString(give, "the nonce")
	require.NoError(t, err)
	require.NoError(t, give.Close())
	require.NoError(t, nonce.Close())

	// A stale file comes first: it is waited out.
	gone, err := routertest.NewRouter(routertest.Config{Path: front})
	require.NoError(t, err)
	stale := gone.File()
	gone.Close()
	require.NoError(t, connfile.Publish(front, stale))
	router, err := routertest.NewRouter(routertest.Config{Path: front})
	require.NoError(t, err)
	t.Cleanup(router.Close)

	require.NoError(t, cmd.Wait(), "%s", &said)
	var got report
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	require.Equal(t, report{
		PID: cmd.Process.Pid, Args: []string{"first", "--subc", front, "--subc=" + front, "last"},
		File: front, Other: "kept", Third: "the nonce",
	}, got)
	require.LessOrEqual(t, strings.Count(said.String(), "waiting:"), 1)
}

func TestRewrite(t *testing.T) {
	for name, c := range map[string]struct{ args, env, wantArgs, wantEnv []string }{
		"both forms, wherever they stand": {
			[]string{"p", "--subc", "/r", "--", "--subc=/r", "x"}, nil,
			[]string{"p", "--subc", "/o", "--", "--subc=/o", "x"}, []string{"SUBC_CONNECTION_FILE=/o"},
		},
		"a flag without its value is left alone": {
			[]string{"p", "--subc"}, nil, []string{"p", "--subc"}, []string{"SUBC_CONNECTION_FILE=/o"},
		},
		"nothing that only looks like it": {
			[]string{"p", "--subcommand", "x", "--subcs=y", "subc"}, []string{"SUBC_CONNECTION_FILES=1"},
			[]string{"p", "--subcommand", "x", "--subcs=y", "subc"}, []string{"SUBC_CONNECTION_FILES=1", "SUBC_CONNECTION_FILE=/o"},
		},
		"the variable is replaced, every one of it": {
			[]string{"p"}, []string{"A=1", "SUBC_CONNECTION_FILE=/r", "B=2", "SUBC_CONNECTION_FILE=/s"},
			[]string{"p"}, []string{"A=1", "B=2", "SUBC_CONNECTION_FILE=/o"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			args, env := Rewrite(c.args, c.env, "/o")
			require.Equal(t, c.wantArgs, args)
			require.Equal(t, c.wantEnv, env)
		})
	}
}

func TestAwaitEndsWithItsContextAndSaysWhatItWaitedFor(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	var said []string
	err := Await(ctx, filepath.Join(t.TempDir(), "none.json"), func(s string) {
		said = append(said, s)
		cancel(why) // it waits from here on
	})
	require.ErrorIs(t, err, why)
	require.ErrorContains(t, err, "does not exist")
	require.Len(t, said, 1)
}

func TestAwaitDoesNotWaitForAFileThatOthersCanRead(t *testing.T) {
	router, err := routertest.NewRouter(routertest.Config{})
	require.NoError(t, err)
	t.Cleanup(router.Close)
	require.NoError(t, os.Chmod(router.Path(), 0o640))
	err = Await(t.Context(), router.Path(), func(string) { t.Error("it waits") })
	require.ErrorIs(t, err, connfile.ErrInsecure)
}

func TestFind(t *testing.T) {
	_, err := Find("/no/such/program")
	require.ErrorIs(t, err, ErrNotFound)
	_, err = Find("no-such-program-in-any-path")
	require.ErrorIs(t, err, ErrNotFound)
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	_, err = Find(plain)
	require.ErrorIs(t, err, ErrNotRun)
	path, err := Find("sh")
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(path))
	require.ErrorIs(t, Exec(plain, []string{plain}, nil), ErrNotRun)
}
