package collective

import (
	"cmp"
	"context"

	"github.com/softrnic/softrnic/acp/internal/plain"
)

// Allgather stores in of rank r in out[r*len(in):] at all ranks.
func Allgather[T any](ctx context.Context, n *Network, in, out []T) error {
	size := n.p.Size()
	return runCall[T](n, "allgather", 0, checkLength("out", len(out), size*len(in)), func() error {
		blocks := make([]T, len(out)) // of this rank, the one below, and so on
		copy(blocks, in)
		for k := range n.out {
			have := 1 << k
			count := min(have, size-have)
			if err := n.exchangeBytes(ctx, k, plain.BytesOf(blocks[:count*len(in)]), plain.BytesOf(blocks[have*len(in):][:count*len(in)])); err != nil {
				return err
			}
		}
		for i := range size {
			copy(out[n.rankAbove(n.p.Rank(), -i)*len(in):], blocks[i*len(in):][:len(in)])
		}
		return nil
	})
}

// Alltoall sends the rth part of in to rank r, and stores the part from rank r as the rth of out. in and out
// have the same length at all ranks, a multiple of the number of ranks, and must not overlap.
func Alltoall[T any](ctx context.Context, n *Network, in, out []T) error {
	size := n.p.Size()
	each := len(in) / size
	invalid := cmp.Or(checkLength("in", len(in), each*size), checkLength("out", len(out), len(in)))
	return runCall[T](n, "alltoall", 0, invalid, func() error {
		blocks := make([]T, len(in)) // by distance to the destination
		block := func(i int) []T { return blocks[i*each:][:each] }
		for i := range size {
			copy(block(i), in[n.rankAbove(n.p.Rank(), i)*each:][:each])
		}
		packed, received := make([]T, len(in)), make([]T, len(in))
		for k := range n.out {
			// Parts whose distance has bit k move 2^k up.
			at := 0
			for i := range size {
				if i>>k&1 == 1 {
					at += copy(packed[at:], block(i))
				}
			}
			if err := n.exchangeBytes(ctx, k, plain.BytesOf(packed[:at]), plain.BytesOf(received[:at])); err != nil {
				return err
			}
			at = 0
			for i := range size {
				if i>>k&1 == 1 {
					at += copy(block(i), received[at:])
				}
			}
		}
		for i := range size {
			copy(out[n.rankAbove(n.p.Rank(), -i)*each:], block(i))
		}
		return nil
	})
}
