package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unit is a unit's assignments with those of its drop-ins, by section and key.
type unit struct {
	name string
	keys map[string][]string
}

func loadUnit(name string) (*unit, error) {
	u := &unit{name, map[string][]string{}}
	found := false
	for _, dir := range []string{"/usr/lib/systemd/system", "/etc/systemd/system"} {
		files := []string{filepath.Join(dir, name)}
		dropIns, err := filepath.Glob(filepath.Join(dir, name+".d", "*.conf"))
		if err != nil {
			return nil, err
		}
		slices.Sort(dropIns)
		for i, file := range append(files, dropIns...) {
			err := u.read(file)
			found = found || i == 0 && err == nil
			if err != nil && !os.IsNotExist(err) {
				return nil, err
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("unit %s not found", name)
	}
	return u, nil
}

func (u *unit) read(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	section := ""
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := strings.TrimSpace(sc.Text())
		switch {
		case line == "", line[0] == '#', line[0] == ';':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				return fmt.Errorf("%s: %q is no assignment", file, line)
			}
			u.keys[section+"."+key] = append(u.keys[section+"."+key], value)
		}
	}
	return nil
}

// last is the assignment that counts for a key that holds one value.
func (u *unit) last(key string) string {
	if all := u.keys[key]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// words are all values of a key that holds a list.
func (u *unit) words(key string) []string { return strings.Fields(strings.Join(u.keys[key], " ")) }

func (u *unit) seconds(key string, otherwise time.Duration) time.Duration {
	n, err := strconv.Atoi(u.last(key))
	if err != nil {
		return otherwise
	}
	return time.Duration(n) * time.Second
}
