package systemd

import (
	"errors"
	"os"
)

// Inherited are the descriptors that an earlier process stored, each under the
// name that it gave. They are the manager's to close, with [Manager.Release].
func (m *Manager) Inherited() []*os.File { return m.files }

// Store makes files what the store holds, under their names, in place of what
// was inherited. The store keeps duplicates; files stay the caller's.
//
// They are not polled: a BPF map answers a poll with an error, and the manager
// would throw it out for that.
func (m *Manager) Store(files []*os.File) error {
	var errs []error
	for _, f := range m.files {
		errs = append(errs, m.send(nil, "FDSTOREREMOVE=1", "FDNAME="+f.Name()))
	}
	for _, f := range files {
		errs = append(errs, m.send(f, "FDSTORE=1", "FDNAME="+f.Name(), "FDPOLL=0"))
	}
	return errors.Join(errs...)
}

// Release closes what was handed over and not taken.
func (m *Manager) Release() {
	for _, f := range append(m.files, m.sockets...) {
		f.Close()
	}
	m.files, m.sockets = nil, nil
}
