package collective

import (
	"context"
	"slices"

	"github.com/softrnic/softrnic/acp/internal/plain"
)

// A tree is this rank's position in a binomial tree. Ranks are counted from the root in the direction of the
// edges, or against it for a tree towards the root: a rank at position v > 0 has an edge to the rank without
// the lowest bit of v, and its subtree has the positions from v on, as many as that bit says.
type tree struct {
	position int
	subtree  int // number of ranks, with this one
	parent   int // k of the edge to the parent, or -1
}

// treeAtPosition returns the tree of the rank at a position among size ranks.
func treeAtPosition(position, size int) tree {
	t := tree{position: position, subtree: size, parent: -1}
	for k := 0; 1<<k < size && t.parent < 0; k++ {
		if position>>k&1 == 1 {
			t.parent, t.subtree = k, min(1<<k, size-position)
		}
	}
	return t
}

// eachChild calls f for each child, the one with the smallest subtree first: k of the edge, and the first and
// the number of the positions of its subtree, relative to this rank's.
func (t tree) eachChild(f func(k, first, n int) error) error {
	for k := 0; 1<<k < t.subtree; k++ {
		if err := f(k, 1<<k, min(1<<k, t.subtree-1<<k)); err != nil {
			return err
		}
	}
	return nil
}

// fromRoot returns this rank's position in the tree whose edges lead away from root.
func (n *Network) fromRoot(root int) tree {
	return treeAtPosition(n.rankAbove(n.p.Rank(), -root), n.p.Size())
}

// toRoot returns this rank's position in the tree whose edges lead towards root.
func (n *Network) toRoot(root int) tree {
	return treeAtPosition(n.rankAbove(root, -n.p.Rank()), n.p.Size())
}

// Bcast sends the values of root to all ranks. buf has the same length at all ranks.
func Bcast[T any](ctx context.Context, n *Network, root int, buf []T) error {
	return runCall[T](n, "broadcast", root, nil, func() error { return n.broadcastBytes(ctx, root, plain.BytesOf(buf)) })
}

// broadcastBytes sends b of root to all ranks.
func (n *Network) broadcastBytes(ctx context.Context, root int, b []byte) error {
	t := n.fromRoot(root)
	if t.parent >= 0 {
		if err := n.exchangeBytes(ctx, t.parent, nil, b); err != nil {
			return err
		}
	}
	return t.eachChildBackward(func(k, _, _ int) error { return n.exchangeBytes(ctx, k, b, nil) })
}

// eachChildBackward is eachChild with the largest subtree first.
func (t tree) eachChildBackward(f func(k, first, n int) error) error {
	var calls []func() error
	_ = t.eachChild(func(k, first, n int) error {
		calls = append(calls, func() error { return f(k, first, n) })
		return nil
	})
	for _, call := range slices.Backward(calls) {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

// Reduce combines in of all ranks element by element with op, which must be associative and commutative, and
// stores the result in out at root. out is not used at other ranks. in is not changed.
func Reduce[T any](ctx context.Context, n *Network, root int, in, out []T, op func(a, b T) T) error {
	return runCall[T](n, "reduce", root, n.checkLengthAt(root, "out", len(out), len(in)), func() error {
		return reduceValues(ctx, n, root, in, out, op)
	})
}

// reduceValues combines in of all ranks into out of root, which may be in.
func reduceValues[T any](ctx context.Context, n *Network, root int, in, out []T, op func(a, b T) T) error {
	sum := out
	if n.p.Rank() != root {
		sum = make([]T, len(in))
	}
	copy(sum, in)
	other := make([]T, len(in))
	t := n.toRoot(root)
	if err := t.eachChild(func(k, _, _ int) error {
		if err := n.exchangeBytes(ctx, k, nil, plain.BytesOf(other)); err != nil {
			return err
		}
		for i, v := range other {
			sum[i] = op(v, sum[i])
		}
		return nil
	}); err != nil || t.parent < 0 {
		return err
	}
	return n.exchangeBytes(ctx, t.parent, plain.BytesOf(sum), nil)
}

// Allreduce combines buf of all ranks element by element with op, which must be associative and commutative,
// and stores the same result in buf at all ranks.
func Allreduce[T any](ctx context.Context, n *Network, buf []T, op func(a, b T) T) error {
	return runCall[T](n, "allreduce", 0, nil, func() error {
		if err := reduceValues(ctx, n, 0, buf, buf, op); err != nil {
			return err
		}
		return n.broadcastBytes(ctx, 0, plain.BytesOf(buf))
	})
}

// Gather stores in of rank r in out[r*len(in):] at root. out is not used at other ranks.
func Gather[T any](ctx context.Context, n *Network, root int, in, out []T) error {
	return runCall[T](n, "gather", root, n.checkLengthAt(root, "out", len(out), n.p.Size()*len(in)), func() error {
		t := n.toRoot(root)
		blocks := make([]T, t.subtree*len(in)) // by position relative to this rank's
		copy(blocks, in)
		if err := t.eachChild(func(k, first, count int) error {
			return n.exchangeBytes(ctx, k, nil, plain.BytesOf(blocks[first*len(in):][:count*len(in)]))
		}); err != nil {
			return err
		}
		if t.parent >= 0 {
			return n.exchangeBytes(ctx, t.parent, plain.BytesOf(blocks), nil)
		}
		for position := range n.p.Size() {
			copy(out[n.rankAbove(root, -position)*len(in):], blocks[position*len(in):][:len(in)])
		}
		return nil
	})
}

// Scatter stores in[r*len(out):] of root in out of rank r. in is not used at other ranks.
func Scatter[T any](ctx context.Context, n *Network, root int, in, out []T) error {
	return runCall[T](n, "scatter", root, n.checkLengthAt(root, "in", len(in), n.p.Size()*len(out)), func() error {
		t := n.fromRoot(root)
		blocks := make([]T, t.subtree*len(out)) // by position relative to this rank's
		if t.parent >= 0 {
			if err := n.exchangeBytes(ctx, t.parent, nil, plain.BytesOf(blocks)); err != nil {
				return err
			}
		} else {
			for position := range n.p.Size() {
				copy(blocks[position*len(out):], in[n.rankAbove(root, position)*len(out):][:len(out)])
			}
		}
		copy(out, blocks)
		return t.eachChildBackward(func(k, first, count int) error {
			return n.exchangeBytes(ctx, k, plain.BytesOf(blocks[first*len(out):][:count*len(out)]), nil)
		})
	})
}
