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
		Claims: []bench.Statement{{
			Sentence: "Light needs more than a second to the moon.",
			Compare:  bench.Value{Of: []string{"laser"}, Unit: measure.Microseconds, At: bench.Everywhere(measure.Bytes), Limit: bench.AtLeast(1e6)},
		}},
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{{Name: "size", Kind: bench.Int, Default: "64", Doc: "bytes"}},
		Run: func(_ context.Context, r *bench.Run) error {
			r.Emit(bench.Row{Series: "laser", X: float64(r.Int("size")), XUnit: measure.Bytes, Y: 1.28e6, YUnit: measure.Microseconds})
			return nil
		},
	}
	res, err := bench.Execute(context.Background(), e, bench.Options{Set: bench.Settings{"size": "4KiB"}})
	fmt.Println(res.Rows[0].X, res.Outcomes[0], err)
	// Output: 4096 reproduced: laser at 4 KiB, in us 1280000 (at least 1000000) <nil>
}
