package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas/cg"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas/ep"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas/is"
	"github.com/softrnic/softrnic/mpi"
)

var errUnverified = errors.New("nas: wrong result")

func (a *app) nasCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "nas",
		Short: "NAS Parallel Benchmarks over MPI: is, cg, ep",
		Args:  noSubcommandArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, b := range []struct {
		name, title string
		powers      bool // of two
		run         func(*mpi.Comm, nas.Class) (nas.Report, error)
	}{
		{"is", "Integer sort", true, is.Run},
		{"cg", "Conjugate gradient", true, cg.Run},
		{"ep", "Embarrassingly parallel: random numbers", false, ep.Run},
	} {
		j, class := job{ranks: 4}, ""
		sub := &cobra.Command{Use: b.name, Short: b.title, Long: b.title + ", verified against the published results." + jobHelp, Args: noArgs}
		sub.Flags().StringVar(&class, "class", "S", "problem `size`: S, W, A, B or C")
		j.addFlags(sub)
		sub.RunE = func(sub *cobra.Command, _ []string) error {
			size, err := nas.ParseClass(class)
			if err != nil {
				return usageErrorf("--class: %w", err)
			}
			check := func(ranks int) error {
				if b.powers {
					return nas.CheckPowerOfTwo(ranks)
				}
				return nil
			}
			return j.runRanks(a, sub, check, func(w mpi.World) error {
				report, err := b.run(w.Comm, size)
				if err != nil {
					return err
				}
				if w.Rank() == 0 {
					fmt.Fprint(a.stdout, report)
				}
				if !report.Verified() {
					return errUnverified
				}
				return nil
			})
		}
		c.AddCommand(sub)
	}
	return c
}
