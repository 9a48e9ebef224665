package wrapper

import (
	"strings"

	"scopeward/proxy/connfile"
)

// flag is how the router tells a module where it is.
const flag = "--subc"

// Rewrite returns args and env with every mention of a connection file replaced
// by file: the value of --subc in either form, wherever it stands, and
// SUBC_CONNECTION_FILE. The variable is set when it was not: it goes before
// whatever else a program would look at. The inputs are left alone.
func Rewrite(args, env []string, file string) (newArgs, newEnv []string) {
	newArgs = make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == flag && i+1 < len(args):
			newArgs = append(newArgs, flag, file)
			i++
		case strings.HasPrefix(a, flag+"="):
			newArgs = append(newArgs, flag+"="+file)
		default:
			newArgs = append(newArgs, a)
		}
	}
	newEnv = make([]string, 0, len(env)+1)
	for _, v := range env {
		if !strings.HasPrefix(v, connfile.EnvFile+"=") {
			newEnv = append(newEnv, v)
		}
	}
	return newArgs, append(newEnv, connfile.EnvFile+"="+file)
}
