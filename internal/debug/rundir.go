package debug

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Directories returns the directories of the user's sockets: below
// XDG_RUNTIME_DIR, which a login session has, and below the system's temporary
// directory, for processes without a session.
func Directories() []string {
	var dirs []string
	if session := os.Getenv("XDG_RUNTIME_DIR"); session != "" {
		dirs = append(dirs, filepath.Join(session, "softrnic"))
	}
	return append(dirs, filepath.Join(os.TempDir(), "softrnic-"+strconv.Itoa(os.Getuid())))
}

// makeRuntimeDir returns the first of Directories that exists or can be
// created.
func makeRuntimeDir() (string, error) {
	var errs []error
	for _, dir := range Directories() {
		err := os.Mkdir(dir, 0o700)
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = checkPrivate(dir)
		}
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("debug endpoint: no directory for sockets: %w", errors.Join(errs...))
}

// checkPrivate returns an error if the directory belongs to another user or
// others may enter it.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory; remove it", dir)
	case !ownedByUser(info):
		return fmt.Errorf("%s belongs to another user; set XDG_RUNTIME_DIR to a directory of yours", dir)
	case !modePrivate(info):
		return fmt.Errorf("%s has mode %#o, others may enter it; run: chmod 700 %[1]s", dir, info.Mode().Perm())
	}
	return nil
}

// A Socket is an endpoint, possibly stale, in one of Directories.
type Socket struct {
	Address Address
	PID     int
}

// Sockets lists the endpoints in a directory, which need not exist.
func Sockets(dir string) ([]Socket, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || len(entries) == 0 && err == nil {
		return nil, nil
	}
	if err == nil {
		err = checkPrivate(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("debug endpoints: %w", err)
	}
	var list []Socket
	for _, e := range entries {
		if pid, ok := socketPID(e.Name()); ok {
			list = append(list, Socket{Address{"unix", filepath.Join(dir, e.Name())}, pid})
		}
	}
	return list, nil
}
