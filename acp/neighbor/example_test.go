package neighbor_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/acp/neighbor"
)

// Three ranks in a row send their numbers to both sides.
func Example() {
	var mu sync.Mutex
	received := make([][2]int, 3)
	err := acptest.Run(3, func(p *acp.Process) error {
		ctx := context.Background()
		to, from := neighbor.Grid(p.Rank(), []int{3}, false)
		x, err := neighbor.Open[int](p, to, from, acp.ChannelOptions{SlotSize: 64})
		if err != nil {
			return err
		}
		mine := []int{10 + p.Rank()}
		above, below := []int{0}, []int{0} // what comes down, and what comes up
		if err := x.Exchange(ctx, [][]int{mine, mine}, [][]int{above, below}); err != nil {
			return err
		}
		mu.Lock()
		received[p.Rank()] = [2]int{below[0], above[0]}
		mu.Unlock()
		return x.Close(ctx)
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(received)
	// Output: [[0 11] [10 12] [11 0]]
}
