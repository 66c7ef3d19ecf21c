package cmdline

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// An Output is a standard output that records its first write error, so that a command whose
// output is lost, for example on a full disk, can fail. It is safe for concurrent use.
type Output struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewOutput returns an Output that writes to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Write implements io.Writer. Its first error is also that of Err.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(b)
	if err != nil {
		err = fmt.Errorf("stdout: %w", err)
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// Err returns the first error of Write.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// IsTerminal reports whether w, or the writer of an Output, is a terminal.
func IsTerminal(w io.Writer) bool {
	if o, ok := w.(*Output); ok {
		w = o.w
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
