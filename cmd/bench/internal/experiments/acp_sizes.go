package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

// acpSizes opens a job and a pair of processes as its baseline, and calls point for each size.
func acpSizes(ctx context.Context, r *bench.Run, ranks int, point func(*acpbench.Job, *verbsbench.Pair, int) error) error {
	sizes := r.Ints("sizes")
	r.Plan(1 + len(sizes))
	r.Step("%d ranks", ranks)
	job, err := acpbench.Open(ctx, acpbench.Config{Ranks: ranks})
	if err != nil {
		return err
	}
	defer job.Close()
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{})
	if err != nil {
		return err
	}
	defer pair.Close()
	for _, size := range sizes {
		r.Step("%d B", size)
		if err := point(job, pair, size); err != nil {
			return err
		}
	}
	return nil
}

// channelSeries returns the series of a channel.
func channelSeries(c acpbench.Channel) string {
	how := "mirrored"
	if c.Imm {
		how = "imm"
	}
	if c.Copy {
		how += "-copy"
	}
	return fmt.Sprintf("acp-%s-%s", how, sizeName(c.SlotSize))
}

// sizeName formats a number of bytes.
func sizeName(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	default:
		return fmt.Sprintf("%dB", n)
	}
}
