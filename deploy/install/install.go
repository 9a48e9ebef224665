package install

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"scopeward/deploy"
	"scopeward/sidecar/config"
)

// Where things go. A package has the units and the program elsewhere, and an
// installation beside it leaves both alone.
const (
	ConfigPath  = "/etc/scopeward/scopeward.jsonc"
	programPath = "/usr/local/bin/scopeward"
	unitFolder  = "/etc/systemd/system"

	packagedProgram = "/usr/bin/scopeward"
	packagedUnit    = "/usr/lib/systemd/system/scopeward.service"
)

// Params say what is installed, and where.
type Params struct {
	Root       string // "/" is this host
	Program    string // the program to copy, on this host
	User       string // the router's user
	RouterUnit string // the router's unit, such as subc.service

	// RouterConfig is the router's JSONC inside the root, and Wrap names the modules
	// whose commands are wrapped there. With none it is not read.
	RouterConfig string
	Wrap         []string
}

// wanted is one file of an installation.
type wanted struct {
	path    string
	text    []byte
	mode    os.FileMode
	initial bool // only written where there is none: it is for the operator to change
}

// New plans an installation.
func New(in Params) (*Plan, error) {
	p := &Plan{root: in.Root}
	if err := in.check(); err != nil {
		return nil, err
	}
	r, err := p.load()
	if err != nil {
		return nil, err
	}
	packaged, err := p.read(packagedUnit)
	if err != nil {
		return nil, err
	}
	program := programPath
	if packaged != nil {
		program = packagedProgram
		p.add(Keep, packagedUnit, "the package's", nil)
	}
	files, err := in.files(program)
	if err != nil {
		return nil, err
	}
	next := r
	next.Files = slices.Clone(r.Files)
	for _, w := range files {
		if err := p.place(&next, w); err != nil {
			return nil, err
		}
	}
	if len(in.Wrap) > 0 {
		if err := p.wrap(&next, in, program); err != nil {
			return nil, err
		}
	}
	if p.Changes() {
		p.first(&next)
		p.Next = []string{
			"systemctl daemon-reload",
			"systemctl enable --now scopeward.socket",
			"systemctl restart " + in.RouterUnit + "   # starts scopeward behind it",
			"scopeward wait --timeout 30s",
		}
	}
	return p, nil
}

func (in Params) check() error {
	unitName := func(s string) bool {
		return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
			return r <= ' ' || r > '~' || strings.ContainsRune(`/\%"'=`, r)
		})
	}
	switch {
	case !unitName(in.User):
		return fmt.Errorf("--user %q is no user's name: name the router's user", in.User)
	case !unitName(in.RouterUnit) || !strings.HasSuffix(in.RouterUnit, ".service"):
		return fmt.Errorf("--router-unit %q is no service: name the router's unit, such as subc.service", in.RouterUnit)
	case len(in.Wrap) > 0 && !filepath.IsAbs(in.RouterConfig):
		return errors.New("--wrap needs --router-config: the absolute path of the router's configuration")
	}
	return nil
}

// files are those of an installation whose program is at program.
func (in Params) files(program string) ([]wanted, error) {
	unit := func(name string) []byte {
		text := string(deploy.File(name))
		text = strings.ReplaceAll(text, packagedProgram, program)
		text = strings.ReplaceAll(text, "subc.service", in.RouterUnit)
		return []byte(strings.ReplaceAll(text, "User=subc", "User="+in.User))
	}
	dropIn := unitFolder + "/" + strings.Replace(deploy.RouterDropIn, "subc.service", in.RouterUnit, 1)
	files := []wanted{
		{ConfigPath, deploy.File(deploy.SampleConfig), 0o644, true},
		{unitFolder + "/" + deploy.SettingsDropIn, unit(deploy.SettingsDropIn), 0o644, true},
		{dropIn, unit(deploy.RouterDropIn), 0o644, false},
	}
	if program == packagedProgram {
		return files, nil
	}
	text, err := os.ReadFile(in.Program)
	if err != nil {
		return nil, &FileError{in.Program, cause(err)}
	}
	return append(files,
		wanted{unitFolder + "/" + deploy.Service, unit(deploy.Service), 0o644, false},
		wanted{unitFolder + "/" + deploy.UserService, unit(deploy.UserService), 0o644, false},
		wanted{unitFolder + "/" + deploy.Socket, unit(deploy.Socket), 0o644, false},
		wanted{program, text, 0o755, false},
	), nil
}

// place plans one file. Who changed a file of ours keeps the change.
func (p *Plan) place(r *record, w wanted) error {
	there, err := p.read(w.path)
	if err != nil {
		return err
	}
	ours, sum := r.sum(w.path), digest(w.text)
	write := func() error {
		return renameio.WriteFile(p.at(w.path), w.text, w.mode, renameio.IgnoreUmask())
	}
	switch {
	case there == nil:
		p.folders(r, w.path)
		p.add(Create, w.path, "", write)
		r.note(w.path, sum)
	case bytes.Equal(there, w.text):
		p.add(Keep, w.path, "unchanged", nil)
	case ours == digest(there):
		p.add(Update, w.path, "", write)
		r.note(w.path, sum)
	case ours != "", w.initial:
		p.add(Keep, w.path, "yours", nil)
	default:
		return &FileError{w.path, ErrForeign}
	}
	return nil
}

// folders plans the folders above path that are not there.
func (p *Plan) folders(r *record, path string) {
	var missing []string
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(p.at(dir)); err == nil || slices.Contains(r.Folders, dir) {
			break
		}
		missing = append(missing, dir)
	}
	slices.Reverse(missing)
	r.Folders = append(slices.Clip(r.Folders), missing...)
}

// first puts the record, and the folders that it names, before everything else.
func (p *Plan) first(r *record) {
	begin := func() error {
		p.folders(r, recordPath)
		for _, dir := range r.Folders {
			if err := os.MkdirAll(p.at(dir), 0o755); err != nil {
				return cause(err)
			}
		}
		return p.save(*r)
	}
	p.Steps = append([]Step{{Create, recordPath, "what is installed, for uninstall", begin}}, p.Steps...)
}

// connectionFile is what the root's configuration publishes: what a wrapped
// command is to read.
func (p *Plan) connectionFile() (string, error) {
	text, err := p.read(ConfigPath)
	if err != nil {
		return "", err
	}
	if text == nil {
		text = deploy.File(deploy.SampleConfig)
	}
	c, err := config.Parse(p.at(ConfigPath), text, func(string) string { return "" })
	if err != nil {
		return "", err
	}
	return c.ConnectionFile, nil
}
