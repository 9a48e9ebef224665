package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"scopeward/proxy/connfile"
)

// EnvLog is the variable that overrides log.level.
const EnvLog = "SCOPEWARD_LOG"

// MaxFile is the largest configuration file that is read, in bytes.
const MaxFile = 1 << 20

// Load reads the file at path over the defaults, applies the environment and
// validates. Its error is an [Error].
func Load(path string, getenv func(string) string) (Config, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Config{}, &Error{File: path, What: "no such file: name one with --config"}
	case err != nil:
		return Config{}, &Error{File: path, What: fmt.Sprintf("can't be read (%v): check its permissions", unwrapPath(err))}
	case !info.Mode().IsRegular():
		return Config{}, &Error{File: path, What: "is not a file: name a configuration file with --config"}
	case info.Size() > MaxFile:
		return Config{}, &Error{File: path, What: "is over 1 MiB: name a configuration file with --config"}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, &Error{File: path, What: fmt.Sprintf("can't be read (%v): check its permissions", unwrapPath(err))}
	}
	return Parse(path, data, getenv)
}

// Parse is [Load] on the file's text. The file's name is for its complaints.
func Parse(file string, data []byte, getenv func(string) string) (Config, error) {
	c := Default()
	doc, err := decode(file, data, &c)
	if err != nil {
		return Config{}, err
	}
	override := getenv(EnvLog)
	if override != "" {
		c.Log.Level = Level(override)
	}
	if c.Router.ConnectionFile == "" {
		c.Router.ConnectionFile = connfile.Discover(getenv)
	}
	if c.Operator.Socket == "" && c.ConnectionFile != "" {
		c.Operator.Socket = filepath.Join(filepath.Dir(c.ConnectionFile), "scopeward.sock")
	}
	if p := c.Validate(); p != nil {
		if p.Key == "log.level" && override != "" {
			return Config{}, &Error{File: "$" + EnvLog, What: p.What}
		}
		return Config{}, doc.complain(p)
	}
	return c, nil
}

// unwrapPath leaves the cause of a path error: the file is named already.
func unwrapPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
