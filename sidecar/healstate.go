package sidecar

import (
	"errors"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/google/renameio/v2"
)

// healFileLimit is the largest state file that is read, in bytes.
const healFileLimit = 1 << 20

// state is the file. Modules are a set: sorted.
type state struct {
	Version int      `json:"version"`
	Modules []string `json:"modules"`
}

const stateVersion = 1

func readState(path string) (state, error) {
	var s state
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	if info.Size() > healFileLimit {
		return s, errors.New("it is over 1 MiB")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s, json.RejectUnknownMembers(true)); err != nil {
		return s, errors.New("it is not a heal state")
	}
	if s.Version != stateVersion {
		return s, errors.New("it is of another version")
	}
	return s, nil
}

// write puts the state in place of what was at path.
func (s state) write(path string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, append(data, '\n'), 0o600, renameio.WithStaticPermissions(0o600))
}
