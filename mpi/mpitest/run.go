package mpitest

import (
	"time"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// grace is how long the others may go on when a rank has failed. They may wait
// for it for ever, which no process manager ends here.
var grace = 5 * time.Second

// Run calls f as each of n ranks at the same time, between mpi.Init and Finalize.
// The error is that of all ranks that failed. Ranks that do not return after
// another has failed are left behind, and the error names them.
func Run(n int, f func(*mpi.World) error) error { return RunOptions(n, mpi.Options{}, f) }

// RunOptions is Run with options for the ranks, whose Manager is set by it.
func RunOptions(n int, o mpi.Options, f func(*mpi.World) error) error {
	return pmi.RunLocal(n, grace, func(m pmi.Manager) error {
		o := o
		o.Manager = m
		return rank(o, f)
	})
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
