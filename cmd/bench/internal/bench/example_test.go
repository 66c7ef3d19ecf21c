package bench_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// An experiment that measures the distance to the moon.
func ExampleExecute() {
	e := &bench.Experiment{
		Name:   "moon",
		Source: "an almanac",
		Claim:  "Light needs more than a second to the moon.",
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{{Name: "size", Kind: bench.Int, Default: "64", Doc: "bytes"}},
		Run: func(_ context.Context, r *bench.Run) (bench.Verdict, error) {
			const us = 1.28e6
			r.Emit(bench.Row{Series: "laser", X: float64(r.Int("size")), XUnit: measure.Bytes, Y: us, YUnit: measure.Microseconds})
			return bench.Verdict{Holds: us > 1e6, Reason: fmt.Sprintf("it takes %.2f s", us/1e6)}, nil
		},
	}
	res, err := bench.Execute(context.Background(), e, bench.Options{Set: bench.Settings{"size": "4KiB"}})
	fmt.Println(res.Rows[0].X, res.Verdict.Holds, res.Verdict.Reason, err)
	// Output: 4096 true it takes 1.28 s <nil>
}
