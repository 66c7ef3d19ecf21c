package dcbench_test

import (
	"context"
	"fmt"
	"os"

	"github.com/softrnic/softrnic/cmd/bench/internal/dcbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

// One cluster of processes for each target. The parent program must call proc.ServeIfWorker
// first.
func Example() {
	ctx := context.Background()
	dir, err := dcbench.TempDir()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	slide, err := dcbench.NewDataSet(dir, dcbench.Microscope, 256<<10, 1<<10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, over := range []sdpbench.Transport{sdpbench.TCP, sdpbench.NIC} {
		cluster, err := dcbench.Open(ctx, dcbench.Config{Transport: over})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer cluster.Close()
		res, err := cluster.Run(ctx, slide)
		if err != nil { // includes a wrong image
			fmt.Println(err)
			return
		}
		fmt.Println(over, res.Units, "units", res.Elapsed > 0)
	}
	// Output:
	// tcp 1428 units true
	// sdp-nic 1428 units true
}
