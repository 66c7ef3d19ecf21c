package sdpbench_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

// One pair of processes for each subject. The parent's program must call
// proc.ServeIfWorker first thing.
func Example() {
	ctx := context.Background()
	for _, over := range []sdpbench.Transport{sdpbench.TCP, sdpbench.NIC} {
		pair, err := sdpbench.Open(ctx, sdpbench.Config{Transport: over})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer pair.Close()
		half, err := pair.Ping(ctx, 64, 100)
		if err != nil {
			fmt.Println(err)
			return
		}
		flow, err := pair.Stream(ctx, sdpbench.StreamOptions{Size: 1024}, 50)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(over, half.Stats().N, half.Median() > 0, flow.Bytes)
	}
	// Output:
	// tcp 100 true 51200
	// sdp-nic 100 true 51200
}
