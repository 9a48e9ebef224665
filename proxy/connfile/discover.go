package connfile

import (
	"os"
	"path/filepath"
)

// Name is what a router calls its connection file.
const Name = "subc-connection.json"

// EnvFile names the connection file for every process a router launches.
const EnvFile = "SUBC_CONNECTION_FILE"

// Discover returns where the router's connection file is looked for, by the
// router's own order: $SUBC_CONNECTION_FILE alone when it is set; else the first
// that exists of $XDG_RUNTIME_DIR/subc-connection.json and
// ~/.local/share/cortexkit/run/subc-connection.json. When neither exists yet it
// is the first of them that the environment names, and "" when it names none.
//
// getenv is os.Getenv outside tests.
func Discover(getenv func(string) string) string {
	if path := getenv(EnvFile); path != "" {
		return path
	}
	var first string
	for _, path := range candidates(getenv) {
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if first == "" {
			first = path
		}
	}
	return first
}

func candidates(getenv func(string) string) []string {
	var paths []string
	if dir := getenv("XDG_RUNTIME_DIR"); dir != "" {
		paths = append(paths, filepath.Join(dir, Name))
	}
	if home := getenv("HOME"); home != "" {
		paths = append(paths, filepath.Join(home, ".local", "share", "cortexkit", "run", Name))
	}
	return paths
}
