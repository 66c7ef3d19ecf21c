package acpbench_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
)

// A job of two processes. The parent program must call proc.ServeIfWorker first.
func Example() {
	ctx := context.Background()
	job, err := acpbench.Open(ctx, acpbench.Config{Ranks: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer job.Close()
	us, err := job.PingPong(acpbench.Channel{SlotSize: 4096, Imm: true}, 8, 10, nil)(ctx)
	fmt.Println(us > 0, err)
	// Output: true <nil>
}
