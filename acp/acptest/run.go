package acptest

import (
	"time"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// grace is how long the others may go on when a rank has failed. They may wait
// for it for ever, which no process manager ends here.
const grace = 10 * time.Second

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
	return pmi.RunLocal(n, grace, func(m pmi.Manager) error {
		o := o
		o.ACP.Manager = m
		return runRank(o, f)
	})
}

// runRank is one of them.
func runRank(o Options, f func(*acp.Process) error) error {
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
