// Package mpitest runs the ranks of a job as goroutines of one process, for tests and
// examples of programs that use package mpi:
//
//	func TestRing(t *testing.T) {
//		require.NoError(t, mpitest.Run(4, func(w mpi.World) error {
//			return ring(w.Comm)
//		}))
//	}
//
// Each rank has its own adapter, on a free address of 127.0.0.0/8: everything except
// the process manager is as in a real job.
package mpitest

import (
	"time"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// grace is the time that ranks may run after another rank has failed. They may wait for
// it forever, and no process manager ends them here.
var grace = 5 * time.Second

// Run calls f as each of n ranks concurrently, between mpi.Init and Finalize. The error
// joins those of all ranks. Ranks that do not return within a few seconds of a failure
// are abandoned, and the error names them.
func Run(n int, f func(mpi.World) error) error { return RunOptions(n, mpi.Options{}, f) }

// RunOptions is Run with options for the ranks. It sets Options.Manager.
func RunOptions(n int, o mpi.Options, f func(mpi.World) error) error {
	return pmi.RunLocal(n, grace, func(m pmi.Manager) error {
		o := o
		o.Manager = m
		return runRank(o, f)
	})
}

func runRank(o mpi.Options, f func(mpi.World) error) error {
	w, err := mpi.Init(openDevice, o)
	if err != nil {
		return err
	}
	if err := f(w); err != nil {
		_ = w.Abort(1, err.Error())
		return err
	}
	return w.Finalize()
}

func openDevice() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }
