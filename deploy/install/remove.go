package install

import (
	"os"
	"path/filepath"
	"slices"
)

// Removal plans to take away what the record says was created in root. With
// purge, files of ours that somebody has changed go too.
func Removal(root string, purge bool) (*Plan, error) {
	p := &Plan{root: root}
	there, err := p.read(recordPath)
	if err != nil || there == nil {
		return p, err
	}
	r, err := p.load()
	if err != nil {
		return nil, err
	}
	for _, w := range r.Wrapped {
		if err := p.unwrap(w); err != nil {
			return nil, err
		}
	}
	rest := record{Version: recordVersion, Folders: r.Folders}
	for _, f := range slices.Backward(r.Files) {
		text, err := p.read(f.Path)
		switch {
		case err != nil:
			return nil, err
		case text == nil:
		case digest(text) == f.SHA256 || purge:
			p.add(Remove, f.Path, "", func() error { return cause(os.Remove(p.at(f.Path))) })
		default:
			p.add(Keep, f.Path, "changed since: remove it with --purge", nil)
			rest.Files = append(rest.Files, f)
		}
	}
	if len(rest.Files) > 0 {
		p.add(Update, recordPath, "", func() error { return p.save(rest) })
	} else {
		p.add(Remove, recordPath, "", func() error { return cause(os.Remove(p.at(recordPath))) })
	}
	for _, dir := range slices.Backward(r.Folders) {
		if held(rest, dir) {
			continue
		}
		p.add(Remove, dir, "if it is empty", func() error {
			// Somebody else's file in it makes it theirs.
			_ = os.Remove(p.at(dir))
			return nil
		})
	}
	if _, err := os.Stat(p.at(stateFolder)); err == nil && !slices.Contains(r.Folders, stateFolder) {
		p.add(Remove, stateFolder, "if it is empty: a ledger stays", func() error {
			_ = os.Remove(p.at(stateFolder))
			return nil
		})
	}
	p.Next = []string{"systemctl daemon-reload", "systemctl restart the router, if it was wrapped"}
	return p, nil
}

// stateFolder is made by the service manager when the unit first starts.
const stateFolder = "/var/lib/scopeward"

// held reports whether a file that stays is below dir.
func held(r record, dir string) bool {
	return slices.ContainsFunc(r.Files, func(f created) bool {
		rel, err := filepath.Rel(dir, f.Path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// unwrap plans to restore the router's configuration: the backup where it is as
// we left it, else by taking our part out of the commands.
func (p *Plan) unwrap(w wrapped) error {
	text, err := p.read(w.Path)
	if err != nil {
		return err
	}
	backup, err := p.read(w.Backup)
	if err != nil {
		return err
	}
	drop := func() error { return cause(os.Remove(p.at(w.Backup))) }
	switch {
	case text == nil || digest(text) == w.Before:
		if backup != nil {
			p.add(Remove, w.Backup, "", drop)
		}
	case backup != nil && digest(text) == w.After && digest(backup) == w.Before:
		p.add(Put, w.Path, "as it was before", func() error { return rewrite(p.at(w.Path), p.at(w.Path), backup) })
		p.add(Remove, w.Backup, "", drop)
	default:
		plain, err := unwrapAll(text, w.Program)
		if err != nil {
			return &FileError{w.Path, err}
		}
		p.add(Put, w.Path, "changed since: only the commands", func() error { return rewrite(p.at(w.Path), p.at(w.Path), plain) })
		if backup != nil {
			p.add(Keep, w.Backup, "the router's configuration was changed since", nil)
		}
	}
	return nil
}
