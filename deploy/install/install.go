package install

import (
	"bytes"
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

	// Instance is the user whose session the router runs in, for
	// scopeward@Instance.service. "" is a router of the system's: with an instance
	// User and RouterUnit are not looked at.
	Instance string

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
	initial, err := p.config(in)
	if err != nil {
		return nil, err
	}
	files, err := in.files(program, initial)
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
		if err := p.wrap(&next, in, program, initial); err != nil {
			return nil, err
		}
	}
	if p.Changes() {
		p.first(&next)
		p.Next = in.next()
	}
	return p, nil
}

// next are the commands that remain.
func (in Params) next() []string {
	if in.Instance != "" {
		return []string{
			"systemctl daemon-reload",
			"systemctl enable --now scopeward@" + in.Instance + ".service",
			"scopeward wait --config " + in.configPath() + " --timeout 30s",
			"restart the router of " + in.Instance + ", if its modules were wrapped",
		}
	}
	return []string{
		"systemctl daemon-reload",
		"systemctl enable --now scopeward.socket",
		"systemctl restart " + in.RouterUnit + "   # starts scopeward behind it",
		"scopeward wait --timeout 30s",
	}
}

func (in Params) check() error {
	unitName := func(s string) bool {
		return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
			return r <= ' ' || r > '~' || strings.ContainsRune(`/\%"'=`, r)
		})
	}
	switch {
	case in.Instance != "" && (!unitName(in.Instance) || in.Instance == "scopeward"):
		return paramsError("--instance %q can't be one: name the user whose session the router runs in", in.Instance)
	case in.Instance != "":
		return in.checkWrap()
	case !unitName(in.User):
		return paramsError("--user %q is no user's name: name the router's user", in.User)
	case !unitName(in.RouterUnit) || !strings.HasSuffix(in.RouterUnit, ".service"):
		return paramsError("--router-unit %q is no service: name the router's unit, such as subc.service", in.RouterUnit)
	}
	return in.checkWrap()
}

func (in Params) checkWrap() error {
	if len(in.Wrap) > 0 && !filepath.IsAbs(in.RouterConfig) {
		return paramsError("--wrap needs --router-config: the absolute path of the router's configuration")
	}
	return nil
}

// files are those of an installation whose program is at program.
func (in Params) files(program string, initial []byte) ([]wanted, error) {
	unit := func(name string) []byte {
		text := string(deploy.File(name))
		text = strings.ReplaceAll(text, packagedProgram, program)
		if in.Instance != "" {
			return []byte(text)
		}
		text = strings.ReplaceAll(text, "subc.service", in.RouterUnit)
		return []byte(strings.ReplaceAll(text, "User=subc", "User="+in.User))
	}
	files := []wanted{{in.configPath(), initial, 0o644, true}}
	if in.Instance == "" {
		dropIn := unitFolder + "/" + strings.Replace(deploy.RouterDropIn, "subc.service", in.RouterUnit, 1)
		files = append(files,
			wanted{unitFolder + "/" + deploy.SettingsDropIn, unit(deploy.SettingsDropIn), 0o644, true},
			wanted{dropIn, unit(deploy.RouterDropIn), 0o644, false},
		)
	}
	if program == packagedProgram {
		return files, nil
	}
	text, err := os.ReadFile(in.Program)
	if err != nil {
		return nil, &FileError{in.Program, cause(err)}
	}
	if in.Instance == "" {
		files = append(files,
			wanted{unitFolder + "/" + deploy.Service, unit(deploy.Service), 0o644, false},
			wanted{unitFolder + "/" + deploy.Socket, unit(deploy.Socket), 0o644, false},
		)
	}
	return append(files,
		wanted{unitFolder + "/" + deploy.UserService, unit(deploy.UserService), 0o644, false},
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

// connectionFile is what the root's configuration publishes, or will: what a
// wrapped command is to read.
func (p *Plan) connectionFile(path string, initial []byte) (string, error) {
	text, err := p.read(path)
	if err != nil {
		return "", err
	}
	if text == nil {
		text = initial
	}
	c, err := config.Parse(p.at(path), text, func(string) string { return "" })
	if err != nil {
		return "", err
	}
	return c.ConnectionFile, nil
}
