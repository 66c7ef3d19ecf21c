//go:build !linux

package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The file is a temporary file with mode 0600.

const pattern = "softrnic-*"

func newFile() (f *os.File, name string, err error) {
	if f, err = os.CreateTemp("", pattern); err != nil { // with mode 0600
		return nil, "", err
	}
	return f, filepath.Base(f.Name()), nil
}

func openFile(name string) (*os.File, error) {
	if ours, err := filepath.Match(pattern, name); err != nil || !ours || name != filepath.Base(name) {
		return nil, fmt.Errorf("malformed segment name %q", name)
	}
	return os.OpenFile(filepath.Join(os.TempDir(), name), os.O_RDWR, 0)
}

func removeFile(f *os.File, name string) error {
	return errors.Join(f.Close(), os.Remove(filepath.Join(os.TempDir(), name)))
}
