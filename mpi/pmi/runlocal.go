package pmi

import (
	"errors"
	"fmt"
	"time"
)

// errGoexit is the error of a rank that called runtime.Goexit, as t.FailNow does.
var errGoexit = errors.New("f called runtime.Goexit")

// maxLocal is the maximum number of ranks of RunLocal: goroutines of one process.
const maxLocal = 1 << 20

// RunLocal calls f as each of n ranks of NewLocal concurrently. The error joins those
// of all ranks. A rank that has not returned grace after the first failure is
// abandoned, and the error names it. It is an error if n is less than 1 or f is nil.
func RunLocal(n int, grace time.Duration, f func(Manager) error) error {
	switch {
	case n < 1 || n > maxLocal:
		return fmt.Errorf("pmi: local job: %d ranks, want 1 to %d", n, maxLocal)
	case f == nil:
		return errors.New("pmi: local job: the function of its ranks is nil")
	}
	type end struct {
		rank int
		err  error
	}
	ends := make(chan end, n)
	waiting := make(map[int]bool, n)
	for i, m := range NewLocal(n) {
		waiting[i] = true
		go func() {
			e := end{i, errGoexit}
			defer func() { ends <- e }()
			e.err = f(m)
		}()
	}
	errs := make([]error, n)
	var timeout <-chan time.Time
	for len(waiting) > 0 {
		select {
		case e := <-ends:
			delete(waiting, e.rank)
			if e.err != nil {
				errs[e.rank] = fmt.Errorf("rank %d: %w", e.rank, e.err)
				if timeout == nil {
					timeout = time.After(grace)
				}
			}
		case <-timeout:
			for i := range waiting {
				errs[i] = fmt.Errorf("rank %d: still running %v after another rank failed", i, grace)
			}
			clear(waiting)
		}
	}
	return errors.Join(errs...)
}
