package mpibench

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// LateBarrier runs a barrier that the last rank enters after a sleep of d, and returns the usage
// of the other ranks, which wait in it.
func (j *Job) LateBarrier(ctx context.Context, d time.Duration) (list []measure.Usage, err error) {
	ranks, err := proc.Call[request, reply](ctx, j.Group, request{Late: d})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.Transport, err)
	}
	for _, r := range ranks {
		if r.Usage != nil {
			list = append(list, *r.Usage)
		}
	}
	return list, nil
}

func (w rank) waitForLate(d time.Duration) (*measure.Usage, error) {
	if err := w.Barrier(); err != nil {
		return nil, err
	}
	if w.Rank() == w.Size()-1 {
		time.Sleep(d)
		return nil, w.Barrier()
	}
	u, err := measure.UsageOf(w.Barrier)
	return &u, err
}
