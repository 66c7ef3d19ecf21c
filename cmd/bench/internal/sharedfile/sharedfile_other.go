//go:build !linux

package sharedfile

import "errors"

// Supported reports whether the package works on this system.
const Supported = false

var errUnsupported = errors.New("sharedfile: Linux only")

// Create returns an error.
func Create(int) (path string, err error) { return "", errUnsupported }

// Map returns an error.
func Map(string, int) ([]byte, error) { return nil, errUnsupported }

// Unmap returns an error.
func Unmap([]byte) error { return errUnsupported }
