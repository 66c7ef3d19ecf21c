package proc_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

func init() {
	proc.RegisterArgs("example", "adder", func(ctx context.Context, w *proc.Worker, mine int) error {
		all, err := proc.Exchange(ctx, w, mine)
		if err != nil {
			return err
		}
		return proc.Serve(ctx, w, func(_ context.Context, n int) (int, error) {
			for _, v := range all {
				n += v
			}
			return n, nil
		})
	})
}

// Two processes exchange a number and add both numbers to the argument of a call.
func Example() {
	ctx := context.Background()
	g, err := proc.Start(ctx, proc.Options{},
		proc.Spec{Name: "example", Role: "adder", Args: 10},
		proc.Spec{Name: "example", Role: "adder", Args: 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close()
	fmt.Println(proc.Call[int, int](ctx, g, 1))
	fmt.Println(proc.Call[int, int](ctx, g, 2))
	// Output:
	// [31 31] <nil>
	// [32 32] <nil>
}
