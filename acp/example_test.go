package acp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

// Rank 0 writes into the starter memory of rank 1, adds to a word of it, and sends a message.
func Example() {
	ctx := context.Background()
	err := acptest.Run(2, func(p *acp.Process) error { // a program calls acp.Init instead
		ch, err := p.NewChannel(0, 1, acp.ChannelOptions{SlotSize: 64})
		if err != nil {
			return err
		}
		if p.Rank() == 0 {
			r, err := p.Register([]byte("hello, global memory"))
			if err != nil {
				return err
			}
			h := p.Copy(p.StarterGA(1), r.GA(0), 20, acp.None)
			h = acp.FetchAdd[uint64](p, nil, p.StarterGA(1).Add(64), 42, h)
			if err := p.Complete(ctx, h); err != nil {
				return err
			}
			_, err = ch.Send([]byte("it is there")).Wait(ctx)
			return err
		}
		buf := make([]byte, 100)
		n, err := ch.Recv(buf).Wait(ctx)
		fmt.Printf("%s: %s, %d\n", buf[:n], p.Starter()[:20], p.LoadStarter(64))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// it is there: hello, global memory, 42
}
