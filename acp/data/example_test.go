package data_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/acp/data"
)

// Rank 0 creates a vector in the memory of rank 2, and distributes its address by starter memory. All ranks
// add to it.
func Example() {
	ctx := context.Background()
	err := acptest.Run(3, func(p *acp.Process) error { // a program calls acp.Init instead
		s, err := data.Open(ctx, p, data.Options{})
		if err != nil {
			return err
		}
		if p.Rank() == 0 {
			v, err := data.NewVector[int64](ctx, s, 2, 0)
			if err != nil {
				return err
			}
			for rank := range p.Size() {
				acp.FetchAdd[uint64](p, nil, p.StarterGA(rank), uint64(v.GA()), acp.None)
			}
			if err := p.Complete(ctx, acp.All); err != nil {
				return err
			}
		}
		if err := p.Sync(ctx); err != nil {
			return err
		}
		v, err := data.OpenVector[int64](ctx, s, acp.GA(binary.NativeEndian.Uint64(p.Starter())))
		if err != nil {
			return err
		}
		if err := v.PushBack(ctx, 10, 4); err != nil {
			return err
		}
		if err := p.Sync(ctx); err != nil {
			return err
		}
		if p.Rank() == 1 {
			sum := int64(0)
			for x, err := range v.All(ctx) {
				if err != nil {
					return err
				}
				sum += x
			}
			fmt.Println("the sum is", sum)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// the sum is 42
}
