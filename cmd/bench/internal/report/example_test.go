package report_test

import (
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

func ExampleText() {
	res := &bench.Result{
		Experiment: &bench.Experiment{Name: "verbs-latency", Source: bench.Adapter},
		Rows: []bench.Row{
			{Series: "udp", X: 8, XUnit: "B", Y: 3, YUnit: "us"},
			{Series: "rc-write", X: 8, XUnit: "B", Y: 3.6, YUnit: "us", Against: &bench.Against{Baseline: "udp", Ratio: 1.2}},
		},
		Outcomes: []bench.Outcome{{Source: bench.Adapter, Sentence: "RC is close to UDP.", Word: bench.Holds, Ours: "rc-write over udp at 8 B 1.20 (at most 1.4)"}},
	}
	fmt.Print(report.Text(res))
	// Output:
	// verbs-latency (the adapter itself)
	//
	// ┌──────────┬─────────────┐
	// │ us       │         8 B │
	// ├──────────┼─────────────┤
	// │ udp      │        3.00 │
	// │ rc-write │ 3.60  1.20× │
	// └──────────┴─────────────┘
	//
	// n×: over udp in the same unit, measured in the same run
	// a ratio is the median of the rounds' own ratios, which need not be the quotient of the median figures
	//
	// claim   RC is close to UDP. (the adapter itself)
	//         -> holds: rc-write over udp at 8 B 1.20 (at most 1.4)
	// verdict 1 holds
}
