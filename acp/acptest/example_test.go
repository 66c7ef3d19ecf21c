package acptest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

func Example() {
	err := acptest.Run(3, func(p *acp.Process) error {
		acp.FetchAdd[uint64](p, nil, p.StarterGA(0), uint64(p.Rank()), acp.None)
		if err := p.Complete(context.Background(), acp.All); err != nil {
			return err
		}
		if err := p.Sync(context.Background()); err != nil {
			return err
		}
		if p.Rank() == 0 {
			fmt.Println("the ranks' sum is", p.LoadStarter(0))
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// the ranks' sum is 3
	// <nil>
}

// TestFailure checks that the error names the failed rank and the cause.
func TestFailure(t *testing.T) {
	wrong := errors.New("two and two made five")
	err := acptest.Run(2, func(p *acp.Process) error {
		if p.Rank() == 1 {
			return wrong
		}
		return nil
	})
	require.ErrorIs(t, err, wrong)
	require.ErrorContains(t, err, "rank 1: two and two made five")
}
