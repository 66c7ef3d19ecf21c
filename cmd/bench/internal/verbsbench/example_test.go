package verbsbench_test

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

// One pair of processes carries several subjects. The parent's program must
// call proc.ServeIfWorker first thing.
func Example() {
	ctx := context.Background()
	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{MTU: 4096})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pair.Close()

	ping, err := pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	half, err := ping.LatencyRounds(100, nil)(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	stream, err := pair.OpenStream(ctx, verbsbench.StreamOptions{Op: verbsbench.RCSend, Size: 65536})
	if err != nil {
		fmt.Println(err)
		return
	}
	flow, err := stream.Round(ctx, 5*time.Millisecond)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(half > 0, flow.MBps() > 0)
	// Output: true true
}
