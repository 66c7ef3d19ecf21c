package pmi_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/mpi/pmi"
)

// Three ranks publish their addresses.
func Example() {
	ctx := context.Background()
	var ranks sync.WaitGroup
	for _, m := range pmi.NewLocal(3) { // in a program: m, err := pmi.Open(ctx)
		ranks.Go(func() {
			m.Put(fmt.Sprintf("address-%d", m.Rank()), fmt.Sprintf("127.0.0.%d:4791", m.Rank()+1))
			if err := m.Fence(ctx); err != nil {
				fmt.Println(err)
				return
			}
			if m.Rank() == 0 {
				for rank := range m.Size() {
					address, err := m.Get(ctx, fmt.Sprintf("address-%d", rank))
					fmt.Println(rank, address, err)
				}
			}
			m.Finalize()
		})
	}
	ranks.Wait()
	// Output:
	// 0 127.0.0.1:4791 <nil>
	// 1 127.0.0.2:4791 <nil>
	// 2 127.0.0.3:4791 <nil>
}
