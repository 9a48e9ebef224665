package main

import (
	"debug/buildinfo"
	"os/exec"
	"path/filepath"
	"strings"
)

// binaries are the programs that worlds are made of.
type binaries struct{ router, native, haproxy, scopeward string }

// absolute makes the paths good in every world's folder.
func (b binaries) absolute() (binaries, error) {
	for _, p := range []*string{&b.router, &b.native, &b.haproxy, &b.scopeward} {
		if *p == "" {
			continue
		}
		path, err := filepath.Abs(*p)
		if err != nil {
			return b, err
		}
		*p = path
	}
	return b, nil
}

// versions say what each started world ran, given the versions that their
// routers published.
func (b binaries) versions(routers map[string]string) map[string]string {
	ran := make(map[string]string, len(routers))
	for world, router := range routers {
		ran[world] = "router " + router
	}
	if ran[worldHAProxy] != "" {
		ran[worldHAProxy] = "(TCP, 2 threads) " + haproxyVersion(b.haproxy)
	}
	if ran[worldOurs] != "" {
		ran[worldOurs] = "revision " + revision(b.scopeward)
	}
	return ran
}

// haproxyVersion is what the binary says of itself.
func haproxyVersion(binary string) string {
	out, err := exec.Command(binary, "-v").Output()
	if err != nil {
		return "of an unknown version"
	}
	fields := strings.Fields(string(out))
	return fields[min(2, len(fields)-1)]
}

// revision is the commit that a Go binary was built from.
func revision(binary string) string {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "unknown"
	}
	commit, dirty := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = " (modified)"
		}
	}
	return commit + dirty
}
