package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
)

// backupSuffix is added to the router's configuration for the name of its
// backup.
const backupSuffix = ".before-scopeward"

// wrap plans the edit of the router's configuration.
func (p *Plan) wrap(r *record, in Params, program string, initial []byte) error {
	path := in.RouterConfig
	text, err := p.read(path)
	if err != nil {
		return err
	}
	if text == nil {
		return &FileError{path, errors.New("is not there: name the router's configuration with --router-config")}
	}
	front, err := p.connectionFile(in.configPath(), initial)
	if err != nil {
		return err
	}
	edited := text
	var changed []string
	for _, id := range in.Wrap {
		next, err := wrapModule(edited, id, program, front)
		if err != nil {
			return &FileError{path, err}
		}
		if string(next) != string(edited) {
			changed = append(changed, id)
		}
		edited = next
	}
	if len(changed) == 0 {
		p.add(Keep, path, "its modules are wrapped", nil)
		return nil
	}
	w := wrapped{Path: path, Backup: path + backupSuffix, Before: digest(text), After: digest(edited), Program: program}
	known := slices.IndexFunc(r.Wrapped, func(o wrapped) bool { return o.Path == path })
	r.Wrapped = slices.Clone(r.Wrapped)
	if known >= 0 && r.Wrapped[known].After == digest(text) {
		w.Before = r.Wrapped[known].Before // the backup stays the one of the beginning
		r.Wrapped[known] = w
	} else {
		if there, err := p.read(w.Backup); err != nil || there != nil && known < 0 {
			return errors.Join(err, &FileError{w.Backup, ErrForeign})
		}
		// Changed since we wrapped it: what is backed up is without our part.
		plain, err := unwrapAll(text, program)
		if err != nil {
			return &FileError{path, err}
		}
		w.Before = digest(plain)
		p.add(Create, w.Backup, "backup of "+path, func() error { return rewrite(p.at(w.Backup), p.at(path), plain) })
		if known >= 0 {
			r.Wrapped[known] = w
		} else {
			r.Wrapped = append(r.Wrapped, w)
		}
	}
	p.add(Wrap, path, "modules "+strings.Join(changed, ", "), func() error { return rewrite(p.at(path), p.at(path), edited) })
	return nil
}

// rewrite writes text to path with the mode and the owner of like. A link is
// followed: what it leads to is written.
func rewrite(path, like string, text []byte) error {
	info, err := os.Stat(like)
	if err != nil {
		return cause(err)
	}
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(info.Mode().Perm()), renameio.IgnoreUmask())
	if err != nil {
		return cause(err)
	}
	defer f.Cleanup()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := f.Chown(int(st.Uid), int(st.Gid)); err != nil {
			return fmt.Errorf("would change its owner: %w", cause(err))
		}
	}
	if _, err := f.Write(text); err != nil {
		return cause(err)
	}
	return f.CloseAtomicallyReplace()
}
