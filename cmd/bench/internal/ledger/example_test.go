package ledger_test

import (
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/env"
	"github.com/softrnic/softrnic/cmd/bench/internal/ledger"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

func ExampleDescribe() {
	run := report.Saved{
		Result:  &bench.Result{Quick: true, Set: bench.Settings{"ranks": "4"}},
		Machine: env.Fingerprint{{Name: "date", Value: "2026-01-02"}, {Name: "revision", Value: "0123abcd"}},
	}
	fmt.Println(ledger.Describe(run, true))
	fmt.Println(ledger.Describe(report.Saved{}, false))
	// Output:
	// Recorded in a quick run with ranks=4 on 2026-01-02, commit 0123abcd.
	// No run is recorded.
}
