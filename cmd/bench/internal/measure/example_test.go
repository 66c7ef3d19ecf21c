package measure_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// The machine gets slower with every round; the ratio is not affected.
func ExampleAlternate() {
	speed := 100.0
	baseline := func(context.Context) (float64, error) { return speed, nil }
	subject := func(context.Context) (float64, error) {
		speed *= 0.8
		return speed, nil
	}
	v, err := measure.Alternate(context.Background(), 4, baseline, subject)
	fmt.Printf("%.2f %v\n", measure.MedianRatio(v[1], v[0]), err)
	// Output: 0.90 <nil>
}
