package mpitest

import (
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// grace is how long the others may go on when a rank has failed. They may wait
// for it for ever, which no process manager ends here.
var grace = 5 * time.Second

// errLeft is the error of a rank that has called runtime.Goexit, as t.FailNow does.
var errLeft = errors.New("it has left f without returning")

// Run calls f as each of n ranks at the same time, between mpi.Init and Finalize.
// The error is that of all ranks that failed. Ranks that do not return after
// another has failed are left behind, and the error names them.
func Run(n int, f func(*mpi.World) error) error { return RunOptions(n, mpi.Options{}, f) }

// RunOptions is Run with options for the ranks, whose Manager is set by it.
func RunOptions(n int, o mpi.Options, f func(*mpi.World) error) error {
	type end struct {
		rank int
		err  error
	}
	ends := make(chan end, n)
	for i, m := range pmi.NewLocal(n) {
		go func() {
			o := o
			o.Manager = m
			e := end{i, errLeft}
			defer func() { ends <- e }()
			e.err = rank(o, f)
		}()
	}
	errs := make([]error, n)
	var over <-chan time.Time
	waiting := make(map[int]bool, n)
	for i := range n {
		waiting[i] = true
	}
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

// rank is one of them.
func rank(o mpi.Options, f func(*mpi.World) error) error {
	w, err := mpi.Init(open, o)
	if err != nil {
		return err
	}
	if err := f(w); err != nil {
		_ = w.Abort(1, err.Error())
		return err
	}
	return w.Finalize()
}

func open() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }
