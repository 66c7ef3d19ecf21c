package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp"
)

// ring is the implementation of vectors and deques: elements of a fixed size in a separate block, the body,
// which is replaced by a longer one when it is full. In a vector the first element is at the beginning of the
// body.
type ring struct{ object }

// Indices of the words of a ring's header.
const (
	ringCap  = iota // capacity of the body in elements
	ringBody        // address of the body, or Null
	ringHead        // index of the first element in the body
)

// initialCap is the capacity of the first body in elements.
const initialCap = 8

// maxElements bounds lengths and indices, so that their sums and products do not overflow.
const maxElements = 1 << 30

// createRing creates a ring with capacity for n elements.
func (r *ring) createRing(ctx context.Context, rank, n int) error {
	if n < 0 || n > maxElements {
		return fmt.Errorf("%w: capacity of %d elements", acp.ErrLength, n)
	}
	if err := r.object.createObject(ctx, rank); err != nil || n == 0 {
		return err
	}
	err := r.withLock(ctx, func(h *header) error { return r.growTo(ctx, h, n) })
	if err != nil {
		err = errors.Join(err, r.s.free(withoutCancel(ctx), r.ga))
	}
	return err
}

// span is a range of contiguous memory.
type span struct {
	at acp.GA
	n  int // bytes
}

// spansOf returns the memory of n elements from i on: one span, or two if it wraps.
func (r *ring) spansOf(h *header, i, n int) []span {
	room, body := int(h.words[ringCap]), acp.GA(h.words[ringBody])
	from := int(h.words[ringHead]) + i
	if from >= room {
		from -= room
	}
	first := min(n, room-from)
	list := []span{{body + acp.GA(from)*acp.GA(r.size), first * r.size}}
	if n > first {
		list = append(list, span{body, (n - first) * r.size})
	}
	return list
}

// readElements reads n elements from i on.
func (r *ring) readElements(h *header, i, n int) ([]byte, error) {
	b := make([]byte, n*r.size)
	rest := b
	if n == 0 {
		return b, nil
	}
	for _, p := range r.spansOf(h, i, n) {
		if err := r.s.readBytes(p.at, rest[:p.n]); err != nil {
			return nil, err
		}
		rest = rest[p.n:]
	}
	return b, nil
}

// writeElements adds the writes of elements from i on.
func (r *ring) writeElements(h *header, i int, b []byte) {
	if len(b) == 0 {
		return
	}
	for _, p := range r.spansOf(h, i, len(b)/r.size) {
		h.writes = append(h.writes, pendingWrite{to: p.at, b: b[:p.n]})
		b = b[p.n:]
	}
}

// withHeader calls f with the lock held, after it has validated the header. Its error is of the call op.
func (r *ring) withHeader(ctx context.Context, op string, f func(h *header) error) error {
	return r.newError(op, r.withLock(ctx, func(h *header) error {
		if room, head := h.words[ringCap], h.words[ringHead]; h.length > room || room > maxElements || head > 0 && head >= room {
			return fmt.Errorf("%w: ring of %d elements at index %d has capacity %d", ErrDamaged, h.length, head, room)
		}
		return f(h)
	}))
}

// growTo increases the capacity to at least n elements.
func (r *ring) growTo(ctx context.Context, h *header, n int) error {
	if n > maxElements {
		return fmt.Errorf("%w: %d elements, want at most %d", acp.ErrLength, n, maxElements)
	}
	if n <= int(h.words[ringCap]) {
		return nil
	}
	if uint64(n)*uint64(r.size) > 1<<31-1 {
		return fmt.Errorf("%w: %d elements of %d bytes each", ErrNoMemory, n, r.size)
	}
	body, err := r.s.malloc(withoutCancel(ctx), r.ga.Rank(), n*r.size)
	if err != nil {
		return err
	}
	to := body
	if h.length > 0 {
		for _, p := range r.spansOf(h, 0, int(h.length)) {
			if err := r.s.copyBytes(to, p.at, p.n); err != nil {
				return err
			}
			to = to.Add(p.n)
		}
	}
	h.garbage = acp.GA(h.words[ringBody])
	h.words = [3]uint64{ringCap: uint64(n), ringBody: uint64(body), ringHead: 0}
	return nil
}

// reserveMore makes capacity for n more elements, and at least doubles a full body, to amortize copies.
func (r *ring) reserveMore(ctx context.Context, h *header, n int) error {
	if n > maxElements {
		return r.growTo(ctx, h, n)
	}
	need, have := int(h.length)+n, int(h.words[ringCap])
	if need <= have {
		return nil
	}
	if err := r.growTo(ctx, h, max(need, min(2*have, maxElements), initialCap)); !errors.Is(err, ErrNoMemory) {
		return err
	}
	return r.growTo(ctx, h, need)
}

// checkIndex returns an error unless elements i to i+n-1 exist.
func checkIndex(h *header, i, n int) error {
	if i < 0 || n < 0 || uint64(i)+uint64(n) > h.length {
		return fmt.Errorf("%w: %d elements from index %d of %d", ErrIndex, n, i, h.length)
	}
	return nil
}
