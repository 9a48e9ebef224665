package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/renameio/v2"
)

// recordPath is where a root remembers what was installed. It is root's to write
// and nobody else's: removal believes it.
const recordPath = "/etc/scopeward/installed.json"

// recordVersion is the only version of the record that is understood.
const recordVersion = 1

// record is what we created in a root.
type record struct {
	Version int       `json:"version"`
	Folders []string  `json:"folders"` // in the order of their creation
	Files   []created `json:"files"`
	Wrapped []wrapped `json:"wrapped"`
}

// created is a file as we wrote it.
type created struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// wrapped is a router's configuration as it was and as we left it.
type wrapped struct {
	Path    string `json:"path"`
	Backup  string `json:"backup"`
	Before  string `json:"before_sha256"`
	After   string `json:"after_sha256"`
	Program string `json:"program"` // what the commands begin with now
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// load reads the record; without one nothing is installed.
func (p *Plan) load() (record, error) {
	r := record{Version: recordVersion}
	b, err := p.read(recordPath)
	if err != nil || b == nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r, json.RejectUnknownMembers(true)); err != nil {
		return r, &FileError{recordPath, errors.New("can't be decoded: it is not what an installation wrote")}
	}
	if r.Version != recordVersion {
		return r, &FileError{recordPath, fmt.Errorf("is of version %d: use the scopeward that wrote it", r.Version)}
	}
	return r, nil
}

// save writes the record, if it says something new. It comes before what it
// records: what is recorded and not there is harmless, the reverse is not.
func (p *Plan) save(r record) error {
	text, err := json.Marshal(r, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if was, err := p.read(recordPath); err == nil && bytes.Equal(was, text) {
		return nil
	}
	return renameio.WriteFile(p.at(recordPath), text, 0o644, renameio.IgnoreUmask())
}

// sum is the digest that the file was written with, "" when it is not ours.
func (r *record) sum(path string) string {
	if i := slices.IndexFunc(r.Files, func(c created) bool { return c.Path == path }); i >= 0 {
		return r.Files[i].SHA256
	}
	return ""
}

// note records a file as it will be.
func (r *record) note(path, sum string) {
	r.Files = slices.DeleteFunc(r.Files, func(c created) bool { return c.Path == path })
	r.Files = append(r.Files, created{path, sum})
}
