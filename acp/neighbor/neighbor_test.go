package neighbor_test

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
	"github.com/softrnic/softrnic/acp/neighbor"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGrid(t *testing.T) {
	for _, c := range []struct {
		rank     int
		lengths  []int
		periodic bool
		to, from []int
	}{
		{0, []int{1}, false, []int{-1, -1}, []int{-1, -1}},
		{0, []int{1}, true, []int{0, 0}, []int{0, 0}},
		{1, []int{2}, true, []int{0, 0}, []int{0, 0}},
		{1, []int{3}, false, []int{0, 2}, []int{2, 0}},
		{2, []int{3}, false, []int{1, -1}, []int{-1, 1}},
		{2, []int{3}, true, []int{1, 0}, []int{0, 1}},
		{4, []int{3, 3}, false, []int{1, 7, 3, 5}, []int{7, 1, 5, 3}},
		{3, []int{2, 3}, true, []int{0, 0, 5, 4}, []int{0, 0, 4, 5}},
	} {
		to, from := neighbor.Grid(c.rank, c.lengths, c.periodic)
		require.Equal(t, c.to, to, "%v", c)
		require.Equal(t, c.from, from, "%v", c)
	}
	require.PanicsWithValue(t, "neighbor: grid [0]: length 0 is not positive", func() { neighbor.Grid(0, []int{0}, true) })
	require.PanicsWithValue(t, "neighbor: grid [2]: rank 2 out of range [0, 2)", func() { neighbor.Grid(2, []int{2}, true) })
}

// TestExchange checks that each rank receives what moves in each direction, on grids with edges, with
// opposite neighbors that are the same rank, and with a rank that is its own neighbor.
func TestExchange(t *testing.T) {
	for _, lengths := range [][]int{{1}, {2}, {3}, {2, 2}, {1, 3}} {
		for _, periodic := range []bool{false, true} {
			for _, imm := range []bool{false, true} {
				t.Run(fmt.Sprint(lengths, periodic, imm), func(t *testing.T) {
					size := 1
					for _, n := range lengths {
						size *= n
					}
					require.NoError(t, acptest.Run(size, func(p *acp.Process) error {
						to, from := neighbor.Grid(p.Rank(), lengths, periodic)
						return exchangeRounds(p, to, from, acp.ChannelOptions{SlotSize: 64, Imm: imm})
					}))
				})
			}
		}
	}
}

// exchangeRounds exchanges messages of several lengths, each with the sender, the direction and the round.
func exchangeRounds(p *acp.Process, to, from []int, o acp.ChannelOptions) error {
	x, err := neighbor.Open[int32](p, to, from, o)
	if err != nil {
		return err
	}
	message := func(rank, direction, round, n int) []int32 {
		return slices.Repeat([]int32{int32(rank), int32(direction), int32(round)}, n)
	}
	for round, n := range []int{1, 0, 3, 100, 5000} {
		out, in := make([][]int32, len(to)), make([][]int32, len(from))
		for i := range to {
			out[i], in[i] = message(p.Rank(), i, round, n), make([]int32, 3*n)
		}
		if err := x.Exchange(context.Background(), out, in); err != nil {
			return err
		}
		for i, rank := range from {
			want := make([]int32, 3*n)
			if rank >= 0 {
				want = message(rank, i, round, n)
			}
			if !slices.Equal(in[i], want) {
				return fmt.Errorf("round %d, direction %d: received %v, want %v", round, i, in[i][:min(3, len(in[i]))], want[:min(3, len(want))])
			}
		}
	}
	if connected := slices.ContainsFunc(to, func(rank int) bool { return rank >= 0 }); connected != (x.Memory() > 0) {
		return fmt.Errorf("memory of %d bytes, with neighbors: %v", x.Memory(), connected)
	}
	return x.Close(context.Background())
}

// TestShortMessage checks that a message of another length is reported, and by later calls again.
func TestShortMessage(t *testing.T) {
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		other := []int{1 - p.Rank()}
		x, err := neighbor.Open[int](p, other, other, acp.ChannelOptions{})
		if err != nil {
			return err
		}
		require.ErrorIs(t, x.Exchange(t.Context(), nil, nil), acp.ErrLength)
		in, want := [][]int{make([]int, 2)}, "2 values"
		if p.Rank() == 1 {
			in, want = [][]int{make([]int, 3)}, "acp: rank 1: exchange with neighbors: invalid length: 2 values on channel 0 from rank 0 to rank 1, want 3"
		}
		for range 2 {
			err = x.Exchange(t.Context(), [][]int{{1, 2}}, in)
			if p.Rank() == 0 {
				require.NoError(t, err)
				break
			}
			require.ErrorIs(t, err, acp.ErrLength)
			require.EqualError(t, err, want)
		}
		return x.Close(t.Context())
	}))
}

// TestOpenErrors checks the errors of Open, and that no channel is created before a wrong argument is refused.
func TestOpenErrors(t *testing.T) {
	require.NoError(t, acptest.Run(1, func(p *acp.Process) error {
		_, err := neighbor.Open[string](p, []int{0}, []int{0}, acp.ChannelOptions{})
		require.ErrorContains(t, err, "contains references")
		for _, c := range []struct {
			to, from []int
			is       error
			want     string
		}{
			{[]int{0, 1}, []int{0}, acp.ErrRank, "rank out of range: rank 1, want ranks below 1"},
			{[]int{0}, []int{0, -2}, acp.ErrRank, "rank out of range: rank -2, want ranks below 1"},
			{[]int{0, 0}, []int{0}, acp.ErrOptions, "invalid options: more channels to this rank than from it"},
			{[]int{0}, []int{-1, 0, 0}, acp.ErrOptions, "invalid options: fewer channels to this rank than from it"},
		} {
			_, err = neighbor.Open[int32](p, c.to, c.from, acp.ChannelOptions{})
			require.ErrorIs(t, err, c.is)
			require.EqualError(t, err, "acp: rank 0: open with neighbors: "+c.want)
		}
		// The next channel is the first one.
		x, err := neighbor.Open[int32](p, []int{0}, []int{0}, acp.ChannelOptions{})
		require.NoError(t, err)
		require.EqualError(t, x.Exchange(t.Context(), [][]int32{{1}}, [][]int32{{0, 0}}),
			"acp: rank 0: exchange with neighbors: invalid length: 1 values on channel 0 from rank 0 to rank 0, want 2")
		return x.Close(t.Context())
	}))
}

// TestOpenFrees checks that an Open that fails frees the channels that it has created, to and from a neighbor
// and this rank: their signals can be reserved again.
func TestOpenFrees(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	o := acp.ChannelOptions{SlotSize: 16, Slots: 9000, Imm: true} // two receivers exceed the limit of signals
	for _, size := range []int{1, 2} {
		require.NoError(t, acptest.Run(size, func(p *acp.Process) error {
			other := size - 1 - p.Rank()
			_, err := neighbor.Open[int32](p, []int{other, other}, []int{other, other}, o)
			require.ErrorIs(t, err, verbs.ErrLimit)
			x, err := neighbor.Open[int32](p, []int{other}, []int{other}, o)
			for err != nil && ctx.Err() == nil {
				p.Progress()
				x, err = neighbor.Open[int32](p, []int{other}, []int{other}, o)
			}
			require.NoError(t, err)
			in := [][]int32{{0}}
			require.NoError(t, x.Exchange(ctx, [][]int32{{int32(p.Rank())}}, in))
			require.Equal(t, int32(other), in[0][0])
			return x.Close(ctx)
		}))
	}
}

// TestContext checks that Exchange ends with its context while a neighbor does not call it, and that the
// exchange cannot be used any more.
func TestContext(t *testing.T) {
	ended := make(chan struct{})
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		other := []int{1 - p.Rank()}
		x, err := neighbor.Open[int](p, other, other, acp.ChannelOptions{})
		if err != nil {
			return err
		}
		if p.Rank() == 0 {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for _, ctx := range []context.Context{ctx, t.Context()} {
				require.ErrorIs(t, x.Exchange(ctx, [][]int{{1}}, [][]int{{0}}), context.Canceled)
			}
			close(ended)
		}
		<-ended
		return x.Close(t.Context())
	}))
}
