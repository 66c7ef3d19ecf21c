// Package acptest runs the ranks of a job as goroutines of one process, for tests
// and examples of programs that use package acp:
//
//	func TestRing(t *testing.T) {
//		require.NoError(t, acptest.Run(4, func(p *acp.Process) error {
//			return ring(p)
//		}))
//	}
//
// Each rank has its own adapter on a free address of 127.0.0.0/8. Only the process manager is simulated.
package acptest

import (
	"context"
	"time"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// grace is the time that the other ranks have to return after one has failed. They may wait for it forever,
// and no process manager terminates them here.
const grace = 10 * time.Second

// Run calls f as each of n ranks concurrently, between acp.Init and Finalize. It returns the joined errors of
// all ranks. Ranks that do not return after another one has failed are left running, and the error names
// them.
func Run(n int, f func(*acp.Process) error) error { return RunOptions(n, Options{}, f) }

// Options configure the ranks.
type Options struct {
	ACP  acp.Options // RunOptions sets Manager
	RNIC rnic.Options
}

// RunOptions is Run with options.
func RunOptions(n int, o Options, f func(*acp.Process) error) error {
	return pmi.RunLocal(n, grace, func(m pmi.Manager) error {
		o := o
		o.ACP.Manager = m
		return runRank(o, f)
	})
}

// runRank runs f as one rank.
func runRank(o Options, f func(*acp.Process) error) error {
	p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(o.RNIC) }, o.ACP)
	if err != nil {
		return err
	}
	if err := f(p); err != nil {
		_ = p.Abort(1, err.Error())
		return err
	}
	return p.Finalize(context.Background())
}
