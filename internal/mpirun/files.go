package mpirun

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// openOutput opens where ranks write.
func (r *run) openOutput() error {
	stdout := &sink{r.Stdout, new(line)}
	r.stderr = &sink{r.Stderr, new(line)}
	if r.Terminal { // a line of one ends that of the other
		r.stderr.line = stdout.line
	}
	files := map[string]*sink{}
	for rank := range r.seats {
		prefix := ""
		if r.Prefix {
			prefix = "[" + strconv.Itoa(rank) + "] "
		}
		var pair [2]*stream
		for i, pattern := range []string{r.Outfile, r.Errfile} {
			to := []*sink{stdout, r.stderr}[i]
			if pattern != "" {
				name := r.fileName(pattern, rank)
				if files[name] == nil {
					f, err := os.Create(name)
					if err != nil {
						return err
					}
					r.files = append(r.files, f)
					files[name] = &sink{f, new(line)}
				}
				to = files[name]
			}
			pair[i] = newStream(to, prefix, r.Terminal && pattern == "")
		}
		r.streams = append(r.streams, pair)
	}
	return nil
}

// fileName is the file of a rank after a pattern.
func (r *run) fileName(pattern string, rank int) string {
	s := r.seats[rank]
	return strings.NewReplacer("%%", "%", "%r", strconv.Itoa(rank), "%h", filepath.Base(r.nodes[s.node]), "%n", strconv.Itoa(s.node),
		"%p", strconv.Itoa(s.app)).Replace(pattern)
}

// close closes what open has opened. An error is the first of what could not be
// written.
func (r *run) close() error {
	for _, pair := range r.streams {
		for _, s := range pair {
			r.wrote(s.close())
		}
	}
	for _, f := range r.files {
		r.wrote(f.Close())
	}
	r.lossMu.Lock()
	defer r.lossMu.Unlock()
	return r.loss
}

// wrote notes the first error of writing what ranks say.
func (r *run) wrote(err error) {
	r.lossMu.Lock()
	defer r.lossMu.Unlock()
	if err != nil && r.loss == nil {
		r.loss = fmt.Errorf("output of ranks is lost: %w", err)
	}
}
