package collective_test

import (
	"context"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/acp/collective"
)

// Three ranks add their numbers.
func Example() {
	sums := make([]int, 3)
	err := acptest.Run(3, func(p *acp.Process) error {
		ctx := context.Background()
		n, err := collective.Open(p, acp.ChannelOptions{})
		if err != nil {
			return err
		}
		v := []int{10 + p.Rank()}
		if err := collective.Allreduce(ctx, n, v, func(a, b int) int { return a + b }); err != nil {
			return err
		}
		sums[p.Rank()] = v[0]
		return n.Close(ctx)
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sums)
	// Output: [33 33 33]
}
