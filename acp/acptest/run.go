package acptest

import (
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// grace is how long the others may go on when a rank has failed. They may wait
// for it for ever, which no process manager ends here.
const grace = 10 * time.Second

// errLeft is the error of a rank that has called runtime.Goexit, as t.FailNow does.
var errLeft = errors.New("it has left f without returning")

// Run calls f as each of n ranks at the same time, between acp.Init and Finalize.
// The error is that of all ranks that failed. Ranks that do not return after
// another has failed are left behind, and the error names them.
func Run(n int, f func(*acp.Process) error) error { return RunOptions(n, Options{}, f) }

// Options say how the ranks are run.
type Options struct {
	ACP  acp.Options // whose Manager is set by RunOptions
	RNIC rnic.Options
}

// RunOptions is Run with options.
func RunOptions(n int, o Options, f func(*acp.Process) error) error {
	type end struct {
		rank int
		err  error
	}
	ends := make(chan end, n)
	waiting := make(map[int]bool, n)
	for i, m := range pmi.NewLocal(n) {
		waiting[i] = true
		go func() {
			o := o
			o.ACP.Manager = m
			e := end{i, errLeft}
			defer func() { ends <- e }()
			e.err = rank(o, f)
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

// rank is one of them.
func rank(o Options, f func(*acp.Process) error) error {
	p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(o.RNIC) }, o.ACP)
	if err != nil {
		return err
	}
	if err := f(p); err != nil {
		_ = p.Abort(1, err.Error())
		return err
	}
	return p.Finalize()
}
