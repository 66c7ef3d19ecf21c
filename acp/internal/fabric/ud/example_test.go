package ud_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

// Rank 1 writes a word of rank 0 by an operation over datagrams.
func Example() {
	o := acptest.Options{ACP: acp.Options{Net: acp.UD}} // or SOFTRNIC_ACP_NET=ud
	err := acptest.RunOptions(2, o, func(p *acp.Process) error {
		if p.Rank() == 1 {
			acp.Swap[uint64](p, nil, p.StarterGA(0), 42, acp.None)
		}
		if err := p.Complete(context.Background(), acp.All); err != nil {
			return err
		}
		if err := p.Sync(context.Background()); err != nil {
			return err
		}
		if p.Rank() == 0 {
			fmt.Println(p.LoadStarter(0), "from rank 1")
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// 42 from rank 1
	// <nil>
}
