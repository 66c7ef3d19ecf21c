package experiments

import (
	"context"

	"github.com/softrnic/softrnic/internal/bench"
	"github.com/softrnic/softrnic/internal/bench/dcbench"
	"github.com/softrnic/softrnic/internal/bench/measure"
)

// microscopeLimit is a target: run time over that with credit-based flow control.
const microscopeLimit = 0.9

func init() {
	bench.Register(&bench.Experiment{
		Name:   "dc-microscope",
		Source: "SDP fig. 10a",
		Layer:  bench.LayerDomain,
		Claim: "With units of 1 KB the virtual microscope takes at least 10 % less time by RDMA-based and NIC-assisted flow control than by credit-based, " +
			"whatever the size of the data set, and these two are within 10 % of one another.",
		Axes:   []bench.Axis{{Name: "data-set size", Unit: measure.Bytes}},
		Params: dcParams("2MiB,4MiB,8MiB,16MiB", "4MiB"),
		Tour:   bench.Settings{"sizes": "1MiB"},
		Run: func(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
			return runApplication(ctx, r, dcbench.Microscope, microscopeLimit)
		},
	})
}
