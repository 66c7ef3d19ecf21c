//go:build !unix

package main

import (
	"errors"
	"io"
)

// A capturePipe is a named pipe that another process writes a capture to. This
// system has none.
type capturePipe struct{ path string }

// newCapturePipe creates a named pipe in a temporary directory. The caller must close it.
func newCapturePipe() (*capturePipe, error) {
	return nil, errors.New("capture: -w -: this system has no named pipes; name a file")
}

// copyTo copies the pipe to w until the writer, which has opened it, closes it.
func (*capturePipe) copyTo(io.Writer) error { return nil }
func (*capturePipe) close() error           { return nil }
