package mpirun

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// maxLine is the maximum number of buffered bytes of an incomplete line. A longer line is written
// in pieces.
const maxLine = 64 << 10

// partialLineDelay is the time after which an incomplete line, such as a prompt, is written to a
// terminal.
const partialLineDelay = 100 * time.Millisecond

// A lineWriter writes the output of several ranks in whole lines.
type lineWriter struct {
	w io.Writer
	*lineState
}

// A lineState is the last line of a file, or of a terminal that several lineWriter values share.
type lineState struct {
	mu      sync.Mutex
	partial *rankStream // has written the beginning of it
}

// A rankStream is the standard output or error output of one rank.
type rankStream struct {
	to     *lineWriter
	prefix []byte

	mu    sync.Mutex
	b     []byte // the beginning of a line
	timer *time.Timer
}

func newRankStream(to *lineWriter, prefix string, terminal bool) *rankStream {
	s := &rankStream{to: to, prefix: []byte(prefix)}
	if terminal {
		s.timer = time.AfterFunc(time.Hour, func() { _ = s.flush() })
		s.timer.Stop()
	}
	return s
}

// Write buffers p and writes the complete lines.
func (s *rankStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b = append(s.b, p...)
	end := bytes.LastIndexByte(s.b, '\n') + 1
	if end == 0 && len(s.b) > maxLine {
		end = len(s.b)
	}
	err := s.to.write(s, s.b[:end])
	s.b = append(s.b[:0], s.b[end:]...)
	if s.timer != nil {
		s.timer.Stop()
		if len(s.b) > 0 {
			s.timer.Reset(partialLineDelay)
		}
	}
	return len(p), err
}

// flush writes the incomplete line.
func (s *rankStream) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.to.write(s, s.b)
	s.b = s.b[:0]
	return err
}

// close flushes the stream and stops its timer.
func (s *rankStream) close() error {
	if s.timer != nil {
		s.timer.Stop()
	}
	return s.flush()
}

// write writes b in one call. It first ends an incomplete line of another rank.
func (k *lineWriter) write(s *rankStream, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []byte
	if k.partial != nil && k.partial != s {
		out = append(out, '\n')
	}
	begins := k.partial != s
	for line := range bytes.Lines(b) {
		if begins {
			out = append(out, s.prefix...)
		}
		out = append(out, line...)
		begins = true
	}
	k.partial = nil
	if b[len(b)-1] != '\n' {
		k.partial = s
	}
	_, err := k.w.Write(out)
	return err
}
