package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/internal/mpirun"
	"github.com/softrnic/softrnic/cmd/internal/mpirun/agent"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// A job is the common part of the MPI benchmarks: they run on the ranks of a process manager,
// of which this program is one, or on ranks that this program starts.
type job struct {
	ranks int // -n
}

const jobHelp = `

The benchmark runs on the ranks of the process manager that has started the program:

    softrnic mpirun -n 4 --hosts node1,node2 bench osu alltoall

Without a process manager it starts -n ranks on this machine, as
softrnic mpirun does, which binds ranks to processors if these divide evenly.`

func (j *job) addFlags(c *cobra.Command) {
	c.Flags().IntVarP(&j.ranks, "ranks", "n", j.ranks, "`number` of ranks to start without a process manager")
}

// runRanks runs f as a rank. check is called with the number of ranks before any rank is
// started; its error is a usage error.
func (j *job) runRanks(a *app, c *cobra.Command, check func(ranks int) error, f func(mpi.World) error) error {
	managed := os.Getenv("PMI_FD") != "" || os.Getenv("PMI_PORT") != ""
	if !managed {
		if j.ranks < 1 {
			return usageErrorf("-n %d: want at least 1 rank", j.ranks)
		}
		if err := check(j.ranks); err != nil {
			return usageErrorf("%w", err)
		}
		if j.ranks > 1 {
			return a.startRanks(c, j.ranks)
		}
	}
	w, err := mpi.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, mpi.Options{})
	if err != nil {
		return err
	}
	if c.Flags().Changed("ranks") && j.ranks != w.Size() {
		return usageErrorf("-n %d: process manager has started %d ranks; omit -n", j.ranks, w.Size())
	}
	if err := check(w.Size()); err != nil {
		return usageErrorf("%w", err)
	}
	if err := f(w); err != nil {
		return err // without Finalize, so that the other ranks are terminated
	}
	return w.Finalize()
}

// agentName is the hidden command with which this program starts ranks.
const agentName = "mpirun-agent"

func (a *app) agentCommand() *cobra.Command {
	return &cobra.Command{
		Use: agentName, Hidden: true, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return agent.Run(c.InOrStdin(), a.stdout) },
	}
}

// startRanks runs this command line n times, as the ranks of a job.
func (a *app) startRanks(c *cobra.Command, n int) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start ranks: %w", err)
	}
	return mpirun.Run(c.Context(), mpirun.Options{
		Programs: []mpirun.Program{{N: n, Args: append([]string{self}, a.args...)}},
		Agent:    []string{self, agentName},
		Stdout:   a.stdout,
		Stderr:   a.stderr,
		Grace:    500 * time.Millisecond,
	})
}
