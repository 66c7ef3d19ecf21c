//go:build !unix

package main

import (
	"errors"
	"io"
)

// A capturePipe is a named pipe that another process writes a capture to. This
// system has none.
type capturePipe struct{ path string }

func newCapturePipe() (*capturePipe, error) {
	return nil, errors.New("capture: -w -: this system has no named pipes; name a file")
}

func (*capturePipe) copyTo(io.Writer) error { return nil }
func (*capturePipe) close() error           { return nil }
