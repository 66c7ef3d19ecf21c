package pmi

import (
	"errors"
	"fmt"
	"time"
)

// errLeft is the error of a rank that has called runtime.Goexit, as t.FailNow does.
var errLeft = errors.New("it has left f without returning")

// RunLocal calls f as each of n ranks of NewLocal at the same time. The error is that
// of all ranks that failed. The others may wait for them for ever, and no process
// manager ends that here: who has not returned grace after the first failure is left
// behind, and the error names it.
func RunLocal(n int, grace time.Duration, f func(Manager) error) error {
	type end struct {
		rank int
		err  error
	}
	ends := make(chan end, n)
	waiting := make(map[int]bool, n)
	for i, m := range NewLocal(n) {
		waiting[i] = true
		go func() {
			e := end{i, errLeft}
			defer func() { ends <- e }()
			e.err = f(m)
		}()
	}
	errs := make([]error, n)
	var over <-chan time.Time
	for len(waiting) > 0 {
		select {
		case e := <-ends:
			delete(waiting, e.rank)
			if e.err != nil {
				errs[e.rank] = fmt.Errorf("rank %d: %w", e.rank, e.err)
				if over == nil {
					over = time.After(grace)
				}
			}
		case <-over:
			for i := range waiting {
				errs[i] = fmt.Errorf("rank %d: no end %v after another has failed", i, grace)
			}
			clear(waiting)
		}
	}
	return errors.Join(errs...)
}
