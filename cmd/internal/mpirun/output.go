package mpirun

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// openOutput opens the output streams of all ranks.
func (r *job) openOutput() error {
	stdout := &lineWriter{r.Stdout, new(lineState)}
	r.stderr = &lineWriter{r.Stderr, new(lineState)}
	if r.Terminal { // a line of one ends that of the other
		r.stderr.lineState = stdout.lineState
	}
	files := map[string]*lineWriter{}
	for rank := range r.placements {
		prefix := ""
		if r.Prefix {
			prefix = "[" + strconv.Itoa(rank) + "] "
		}
		var pair [2]*rankStream
		for i, pattern := range []string{r.Outfile, r.Errfile} {
			to := []*lineWriter{stdout, r.stderr}[i]
			if pattern != "" {
				name := r.outputFileName(pattern, rank)
				if files[name] == nil {
					f, err := os.Create(name)
					if err != nil {
						return err
					}
					r.files = append(r.files, f)
					files[name] = &lineWriter{f, new(lineState)}
				}
				to = files[name]
			}
			pair[i] = newRankStream(to, prefix, r.Terminal && pattern == "")
		}
		r.streams = append(r.streams, pair)
	}
	return nil
}

// outputFileName expands the pattern of an output file for a rank.
func (r *job) outputFileName(pattern string, rank int) string {
	s := r.placements[rank]
	return strings.NewReplacer("%%", "%", "%r", strconv.Itoa(rank), "%h", filepath.Base(r.nodes[s.node]), "%n", strconv.Itoa(s.node),
		"%p", strconv.Itoa(s.app)).Replace(pattern)
}

// closeOutput flushes the streams and closes the files. It returns the first write error of the
// job.
func (r *job) closeOutput() error {
	for _, pair := range r.streams {
		for _, s := range pair {
			r.noteWriteError(s.close())
		}
	}
	for _, f := range r.files {
		r.noteWriteError(f.Close())
	}
	r.writeErrMu.Lock()
	defer r.writeErrMu.Unlock()
	return r.writeErr
}

// noteWriteError records the first error of writing a rank's output.
func (r *job) noteWriteError(err error) {
	r.writeErrMu.Lock()
	defer r.writeErrMu.Unlock()
	if err != nil && r.writeErr == nil {
		r.writeErr = fmt.Errorf("write output of ranks: %w", err)
	}
}
