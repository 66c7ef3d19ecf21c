package overlap_test

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/overlap"
)

// A transfer of 1 ms whose computation of the same length leaves a tenth of it.
func ExampleResult() {
	r := overlap.Result{Transfer: time.Millisecond, Compute: time.Millisecond, Both: 1200 * time.Microsecond, Left: 100 * time.Microsecond}
	fmt.Printf("%.1f hidden, %.0f %% left\n", r.Overlap(), r.LeftPercent())
	// Output: 0.8 hidden, 10 % left
}
