package acp_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

// Particle is a value without references.
type Particle struct {
	Name     [4]byte
	X, Y     float64
	Charge   int8
	Velocity [2]float32
}

func ExampleChan() {
	ctx := context.Background()
	err := acptest.Run(2, func(p *acp.Process) error {
		c, err := acp.NewChan[Particle](p, 0, 1, acp.ChannelOptions{Imm: true})
		if err != nil {
			return err
		}
		if p.Rank() == 0 {
			for i := range 3 {
				if err := c.Send(ctx, Particle{X: float64(i), Charge: -1}); err != nil {
					return err
				}
			}
			return c.Close(ctx)
		}
		for v, err := range c.All(ctx) {
			if err != nil {
				return err
			}
			fmt.Println(v.X, v.Charge)
		}
		return c.Close(ctx)
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0 -1
	// 1 -1
	// 2 -1
}

// TestChanSlices sends several values in a message, and receives them as another type.
func TestChanSlices(t *testing.T) {
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		c, err := acp.NewChan[int32](p, 0, 1, acp.ChannelOptions{})
		require.NoError(t, err)
		if p.Rank() == 0 {
			for _, v := range [][]int32{{1, 2, 3}, {}, {4, 5}} {
				require.NoError(t, c.SendSlice(ctx, v))
			}
			return c.Close(ctx)
		}
		v := make([]int32, 2)
		for _, want := range []int{2, 0} {
			n, err := c.RecvSlice(ctx, v)
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
		require.Equal(t, []int32{1, 2}, v)
		_, err = c.Recv(ctx)
		require.NoError(t, err, "the first of two; the other one is cut off")
		return c.Close(ctx)
	}))
}

// TestChanRecvEnds cancels receives. No canceled receive may consume a value, whatever its position in the
// queue.
func TestChanRecvEnds(t *testing.T) {
	for name, o := range variants {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
				c, err := acp.NewChan[int32](p, 0, 1, o)
				require.NoError(t, err)
				if p.Rank() == 0 {
					if err := p.Sync(ctx); err != nil { // rank 1 has canceled its receive
						return err
					}
					for i := range int32(3) {
						require.NoError(t, c.Send(ctx, i))
					}
					return c.Close(ctx)
				}
				over, end := context.WithCancel(ctx)
				end()
				_, err = c.Recv(over)
				require.ErrorIs(t, err, context.Canceled)
				waits := c.Channel().Recv(make([]byte, 4)) // between two receives that are canceled
				for range 2 {
					_, err = c.RecvSlice(over, make([]int32, 1))
					require.ErrorIs(t, err, context.Canceled)
				}
				require.NoError(t, p.Sync(ctx))
				n, err := waits.Wait(ctx)
				require.NoError(t, err)
				require.Equal(t, 4, n)
				for want := range int32(2) {
					v, err := c.Recv(ctx)
					require.NoError(t, err)
					require.Equal(t, want+1, v)
				}
				_, err = c.Recv(ctx)
				require.ErrorIs(t, err, acp.ErrEnd)
				return c.Close(ctx)
			}))
		})
	}
}

// TestChanTypes checks that types with references are rejected.
func TestChanTypes(t *testing.T) {
	require.NoError(t, acptest.Run(1, func(p *acp.Process) error {
		o := acp.ChannelOptions{SlotSize: 64, Slots: 1}
		for what, err := range map[string]error{
			"string":  newChanErr[string](p, o),
			"pointer": newChanErr[*int](p, o),
			"slice":   newChanErr[struct{ A []int }](p, o),
			"map":     newChanErr[[3]map[int]int](p, o),
			"any":     newChanErr[any](p, o),
			"uintptr": newChanErr[uintptr](p, o),
		} {
			require.ErrorIs(t, err, acp.ErrOptions, what)
		}
		require.NoError(t, newChanErr[Particle](p, o))
		require.NoError(t, newChanErr[struct{}](p, o))
		return nil
	}))
}

func newChanErr[T any](p *acp.Process, o acp.ChannelOptions) error {
	_, err := acp.NewChan[T](p, p.Rank(), p.Rank(), o)
	return err
}
