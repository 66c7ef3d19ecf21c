package mpirun

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

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
