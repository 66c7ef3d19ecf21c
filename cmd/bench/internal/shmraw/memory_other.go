//go:build !linux

package shmraw

import "errors"

// Supported reports whether the package works on this system.
const Supported = false

var errUnsupported = errors.New("shmraw: shared memory is measured on Linux only")

func newFile() (string, error)       { return "", errUnsupported }
func mapFile(string) ([]byte, error) { return nil, errUnsupported }
