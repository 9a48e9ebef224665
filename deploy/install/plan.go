package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Action is what a step does.
type Action string

// The actions.
const (
	Create Action = "create" // a file or folder that is not there
	Update Action = "update" // a file of ours, by another version of it
	Keep   Action = "keep"   // as it is; Why says for what reason
	Wrap   Action = "wrap"   // modules' commands in the router's configuration
	Remove Action = "remove" // what we created
	Put    Action = "restore"
)

// Step is one thing that a plan does.
type Step struct {
	Action Action
	Path   string // as it is called inside the root
	Why    string // "" when the action says enough

	do func() error // nil for Keep
}

// Plan is what would be done.
type Plan struct {
	Steps []Step
	Next  []string // commands that remain to be run by hand
	root  string
}

// Changes reports whether applying the plan would change anything.
func (p *Plan) Changes() bool {
	for _, s := range p.Steps {
		if s.do != nil {
			return true
		}
	}
	return false
}

// Apply does the plan's steps in their order and ends at the first that fails.
// Running the same command again goes on from there.
func (p *Plan) Apply() error {
	for _, s := range p.Steps {
		if s.do == nil {
			continue
		}
		if err := s.do(); err != nil {
			return &FileError{s.Path, err}
		}
	}
	return nil
}

func (p *Plan) add(a Action, path, why string, do func() error) {
	p.Steps = append(p.Steps, Step{a, path, why, do})
}

// at is where path lies on this host.
func (p *Plan) at(path string) string { return filepath.Join(p.root, path) }

// read is a file's text, nil and no error when it is not there.
func (p *Plan) read(path string) ([]byte, error) {
	b, err := os.ReadFile(p.at(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &FileError{path, cause(err)}
	}
	if b == nil {
		b = []byte{}
	}
	return b, nil
}

// cause is an error without the path that is named already.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
