//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// A capturePipe is a named pipe that another process writes a capture to.
type capturePipe struct {
	path string
	r    *os.File
}

// newCapturePipe creates a named pipe in a temporary directory. The caller must close it.
func newCapturePipe() (*capturePipe, error) {
	dir, err := os.MkdirTemp("", "softrnic-capture-*")
	if err != nil {
		return nil, err
	}
	p := &capturePipe{path: filepath.Join(dir, "pipe")}
	if err := syscall.Mkfifo(p.path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("mkfifo %s: %w", p.path, err), os.RemoveAll(dir))
	}
	if p.r, err = os.OpenFile(p.path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

// copyTo copies the pipe to w until the writer, which has opened it, closes it.
func (p *capturePipe) copyTo(w io.Writer) error {
	_, err := io.Copy(w, p.r)
	return err
}

func (p *capturePipe) close() error {
	return errors.Join(p.r.Close(), os.RemoveAll(filepath.Dir(p.path)))
}
