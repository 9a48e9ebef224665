package wrapper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
)

// lookEvery is how often a file that is there and does not answer is tried
// again, beside its changes.
const lookEvery = 200 * time.Millisecond

// Await waits until file is there and a handshake with it succeeds, or until ctx
// ends: then the error wraps ctx's cause. say is called once when there is
// something to wait for. A file that others can read or replace is an error at
// once: waiting does not make it safe.
func Await(ctx context.Context, file string, say func(why string)) error {
	w, err := connfile.Watch(file)
	if err != nil {
		return err
	}
	defer w.Close()
	said := false
	for {
		err := try(ctx, file)
		if err == nil {
			return nil
		}
		if errors.Is(err, connfile.ErrInsecure) || errors.Is(err, fs.ErrPermission) {
			return err
		}
		if !said {
			say(absence(err))
			said = true
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", absence(err), context.Cause(ctx))
		}
		select {
		case <-w.Changes():
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
	}
}

func try(ctx context.Context, file string) error {
	f, err := connfile.Read(file)
	if err != nil {
		return err
	}
	conn, err := connfile.Dial(ctx, f, handshake.RoleWatchdog)
	if err != nil {
		return err
	}
	return conn.Close()
}

func absence(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "it does not exist yet"
	}
	var fe *connfile.FileError
	if errors.As(err, &fe) {
		return fe.What
	}
	return "nothing answers there yet"
}
