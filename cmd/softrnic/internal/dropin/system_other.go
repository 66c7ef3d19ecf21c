//go:build !linux

package dropin

import (
	"errors"
	"os"
)

// lockFile does nothing: the libraries are built on Linux only.
func lockFile(string) (unlock func(), err error) { return func() {}, nil }

// CreateCapture does nothing.
func CreateCapture(string) error { return nil }

// Exec returns errors.ErrUnsupported.
func Exec(path string, args, environ []string) error {
	return &os.PathError{Op: "exec", Path: path, Err: errors.ErrUnsupported}
}

// securityOf returns "".
func securityOf(string, os.FileInfo) string { return "" }
