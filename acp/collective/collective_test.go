package collective_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/acp/collective"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// values returns n values that name a rank and their index.
func values(rank, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(rank*1000 + i)
	}
	return v
}

// join returns the values of all ranks.
func join(size, n int) (all []int64) {
	for rank := range size {
		all = append(all, values(rank, n)...)
	}
	return all
}

// TestCalls checks all calls against their definition, with every number of ranks up to 6 and every root, for
// messages that are empty, short, and longer than a slot.
func TestCalls(t *testing.T) {
	for size := 1; size <= 6; size++ {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			require.NoError(t, acptest.Run(size, func(p *acp.Process) error {
				c, err := collective.Open(p, acp.ChannelOptions{SlotSize: 64, Imm: size%2 == 0})
				if err != nil {
					return err
				}
				for _, n := range []int{1, 0, 3, 40} {
					for root := range size {
						if err := checkRooted(c, p, root, n); err != nil {
							return fmt.Errorf("%d values, root %d: %w", n, root, err)
						}
					}
					if err := checkUnrooted(c, p, n); err != nil {
						return fmt.Errorf("%d values: %w", n, err)
					}
				}
				if (size > 1) != (c.Memory() > 0) {
					return fmt.Errorf("memory of %d bytes", c.Memory())
				}
				return c.Close(context.Background())
			}))
		})
	}
}

func checkRooted(c *collective.Network, p *acp.Process, root, n int) error {
	ctx, size, rank := context.Background(), p.Size(), p.Rank()
	mine, sum, all, part := values(rank, n), make([]int64, n), make([]int64, size*n), make([]int64, n)
	buf := slices.Clone(mine)
	if n == 0 && rank == root {
		buf = nil // is a message, too
	}
	if err := collective.Bcast(ctx, c, root, buf); err != nil {
		return err
	}
	if err := collective.Reduce(ctx, c, root, mine, sum, func(a, b int64) int64 { return a + b }); err != nil {
		return err
	}
	if err := collective.Gather(ctx, c, root, mine, all); err != nil {
		return err
	}
	if err := collective.Scatter(ctx, c, root, join(size, n), part); err != nil {
		return err
	}
	switch {
	case !slices.Equal(mine, values(rank, n)):
		return fmt.Errorf("input changed")
	case !slices.Equal(buf, values(root, n)):
		return fmt.Errorf("broadcast: %v", buf)
	case !slices.Equal(part, mine):
		return fmt.Errorf("scatter: %v", part)
	case rank != root:
	case !slices.Equal(all, join(size, n)):
		return fmt.Errorf("gather: %v", all)
	case !slices.Equal(sum, sums(size, n)):
		return fmt.Errorf("reduce: %v", sum)
	}
	return nil
}

// sums returns the sum of values over all ranks.
func sums(size, n int) []int64 {
	sum := make([]int64, n)
	for rank := range size {
		for i, v := range values(rank, n) {
			sum[i] += v
		}
	}
	return sum
}

func checkUnrooted(c *collective.Network, p *acp.Process, n int) error {
	ctx, size, rank := context.Background(), p.Size(), p.Rank()
	sum, all := values(rank, n), make([]int64, size*n)
	if err := collective.Allreduce(ctx, c, sum, func(a, b int64) int64 { return a + b }); err != nil {
		return err
	}
	if err := collective.Allgather(ctx, c, values(rank, n), all); err != nil {
		return err
	}
	// Part r of rank s is s*1000 + r in each value.
	in, out := make([]int64, size*n), make([]int64, size*n)
	for i := range in {
		in[i] = int64(rank*1000 + i/n)
	}
	if err := collective.Alltoall(ctx, c, in, out); err != nil {
		return err
	}
	for i, v := range out {
		if want := int64(i/n*1000 + rank); v != want {
			return fmt.Errorf("alltoall: value %d is %d, want %d", i, v, want)
		}
	}
	if !slices.Equal(sum, sums(size, n)) {
		return fmt.Errorf("allreduce: %v", sum)
	}
	if !slices.Equal(all, join(size, n)) {
		return fmt.Errorf("allgather: %v", all)
	}
	return nil
}

// TestMemory checks that the memory grows by the same amount for each doubling of the number of ranks.
func TestMemory(t *testing.T) {
	memory := map[int]int{}
	for _, size := range []int{1, 2, 4, 8} {
		require.NoError(t, acptest.Run(size, func(p *acp.Process) error {
			c, err := collective.Open(p, acp.ChannelOptions{})
			if err != nil {
				return err
			}
			if err := collective.Allreduce(context.Background(), c, []int{1}, func(a, b int) int { return a + b }); err != nil {
				return err
			}
			if p.Rank() == 0 {
				memory[size] = c.Memory()
			}
			return c.Close(context.Background())
		}))
	}
	require.Zero(t, memory[1])
	require.Equal(t, 2*memory[2], memory[4])
	require.Equal(t, 3*memory[2], memory[8])
	require.Less(t, memory[2], 32<<10)
}

// TestErrors checks the errors of wrong arguments, and that the network remains usable.
func TestErrors(t *testing.T) {
	sum := func(a, b int) int { return a + b }
	require.NoError(t, acptest.Run(1, func(p *acp.Process) error {
		for want, call := range map[string]func(c *collective.Network) error{
			"acp: rank 0: broadcast: invalid options: type string contains references": func(c *collective.Network) error {
				return collective.Bcast(t.Context(), c, 0, []string{""})
			},
			"acp: rank 0: broadcast: rank out of range: root 1": func(c *collective.Network) error {
				return collective.Bcast(t.Context(), c, 1, []int{0})
			},
			"acp: rank 0: reduce: invalid length: out has 1 values, want 2": func(c *collective.Network) error {
				return collective.Reduce(t.Context(), c, 0, make([]int, 2), make([]int, 1), sum)
			},
			"acp: rank 0: allreduce: invalid options: type string contains references": func(c *collective.Network) error {
				return collective.Allreduce(t.Context(), c, []string{""}, func(a, b string) string { return a + b })
			},
			"acp: rank 0: gather: invalid length: out has 1 values, want 2": func(c *collective.Network) error {
				return collective.Gather(t.Context(), c, 0, make([]int, 2), make([]int, 1))
			},
			"acp: rank 0: scatter: invalid length: in has 2 values, want 1": func(c *collective.Network) error {
				return collective.Scatter(t.Context(), c, 0, make([]int, 2), make([]int, 1))
			},
			"acp: rank 0: allgather: invalid length: out has 0 values, want 2": func(c *collective.Network) error {
				return collective.Allgather(t.Context(), c, make([]int, 2), nil)
			},
			"acp: rank 0: alltoall: invalid length: out has 1 values, want 2": func(c *collective.Network) error {
				return collective.Alltoall(t.Context(), c, make([]int, 2), make([]int, 1))
			},
		} {
			c, err := collective.Open(p, acp.ChannelOptions{})
			require.NoError(t, err)
			require.EqualError(t, call(c), want)
			out := []int{0}
			require.NoError(t, collective.Allgather(t.Context(), c, []int{1}, out))
			require.Equal(t, []int{1}, out)
			require.NoError(t, c.Close(t.Context()))
		}
		_, err := collective.Open(p, acp.ChannelOptions{SlotSize: 3})
		require.NoError(t, err, "one rank has no channels")
		return nil
	}))
}

// TestRefusedCall checks that a rank whose arguments were refused can make the call again, with the messages
// that the other ranks have sent in it.
func TestRefusedCall(t *testing.T) {
	const size = 4
	require.NoError(t, acptest.Run(size, func(p *acp.Process) error {
		c, err := collective.Open(p, acp.ChannelOptions{})
		require.NoError(t, err)
		all := make([]int64, size*3)
		if p.Rank() == 1 {
			require.ErrorIs(t, collective.Gather(t.Context(), c, 1, values(1, 3), all[1:]), acp.ErrLength)
			require.ErrorIs(t, collective.Gather(t.Context(), c, size, values(1, 3), all), acp.ErrRank)
		}
		require.NoError(t, collective.Gather(t.Context(), c, 1, values(p.Rank(), 3), all))
		if p.Rank() == 1 {
			require.Equal(t, join(size, 3), all)
			require.ErrorIs(t, collective.Allgather(t.Context(), c, values(1, 3), nil), acp.ErrLength)
		}
		require.NoError(t, collective.Allgather(t.Context(), c, values(p.Rank(), 3), all))
		require.Equal(t, join(size, 3), all)
		return c.Close(t.Context())
	}))
}

// TestOpenFrees checks that an Open that fails frees the channels that it has created: their signals can be
// reserved again.
func TestOpenFrees(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, acptest.Run(4, func(p *acp.Process) error {
		o := acp.ChannelOptions{SlotSize: 16, Slots: 9000, Imm: true} // two receivers exceed the limit of signals
		_, err := collective.Open(p, o)
		require.ErrorIs(t, err, verbs.ErrLimit)
		above, below := (p.Rank()+1)%4, (p.Rank()+3)%4
		in, err := p.NewChannel(below, p.Rank(), o)
		for err != nil && ctx.Err() == nil {
			p.Progress()
			in, err = p.NewChannel(below, p.Rank(), o)
		}
		require.NoError(t, err)
		out, err := p.NewChannel(p.Rank(), above, o)
		require.NoError(t, err)
		for _, c := range []*acp.Channel{out, in} {
			_, err := c.Free().Wait(ctx)
			require.NoError(t, err)
		}
		return nil
	}))
}

// TestDifferentLengths checks that a rank reports a message that is shorter than its buffer, and that the
// network is not usable then.
func TestDifferentLengths(t *testing.T) {
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		c, err := collective.Open(p, acp.ChannelOptions{})
		require.NoError(t, err)
		err = collective.Bcast(t.Context(), c, 0, make([]byte, 5+p.Rank()))
		if p.Rank() == 1 {
			require.EqualError(t, err, "acp: rank 1: broadcast: invalid length: 5 bytes on channel 0 from rank 0 to rank 1, want 6")
			require.Equal(t, err, collective.Allgather(t.Context(), c, []int{1}, []int{0, 0}))
		} else {
			require.NoError(t, err)
		}
		return c.Close(t.Context())
	}))
}

// TestContext checks that a call ends with its context while other ranks do not make it, and that its error
// names it.
func TestContext(t *testing.T) {
	ended := make(chan struct{})
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		c, err := collective.Open(p, acp.ChannelOptions{})
		require.NoError(t, err)
		if p.Rank() == 0 {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			err := collective.Allreduce(ctx, c, []int{1}, func(a, b int) int { return a + b })
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, "acp: rank 0: allreduce: ")
			close(ended)
		}
		<-ended
		return c.Close(t.Context())
	}))
}
