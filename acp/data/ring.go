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

// withHeader is withLock that also validates the header.
func (r *ring) withHeader(ctx context.Context, f func(h *header) error) error {
	return r.withLock(ctx, func(h *header) error {
		if room, head := h.words[ringCap], h.words[ringHead]; h.length > room || room > maxElements || head > 0 && head >= room {
			return fmt.Errorf("%w: ring of %d elements at index %d has capacity %d", ErrDamaged, h.length, head, room)
		}
		return f(h)
	})
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

// The operations on the bytes of elements.

func (r *ring) loadRange(ctx context.Context, i, n int) (b []byte, err error) {
	err = r.withHeader(ctx, func(h *header) error {
		if err := checkIndex(h, i, n); err != nil {
			return err
		}
		b, err = r.readElements(h, i, n)
		return err
	})
	return b, err
}

func (r *ring) loadAll(ctx context.Context) (b []byte, err error) {
	err = r.withHeader(ctx, func(h *header) (err error) {
		b, err = r.readElements(h, 0, int(h.length))
		return err
	})
	return b, err
}

func (r *ring) storeRange(ctx context.Context, i int, b []byte) error {
	return r.withHeader(ctx, func(h *header) error {
		if err := checkIndex(h, i, len(b)/r.size); err != nil {
			return err
		}
		r.writeElements(h, i, b)
		return nil
	})
}

func (r *ring) pushBack(ctx context.Context, b []byte) error {
	n := len(b) / r.size
	return r.withHeader(ctx, func(h *header) error {
		if err := r.reserveMore(ctx, h, n); err != nil {
			return err
		}
		h.length += uint64(n)
		r.writeElements(h, int(h.length)-n, b)
		return nil
	})
}

func (r *ring) pushFront(ctx context.Context, b []byte) error {
	n := len(b) / r.size
	return r.withHeader(ctx, func(h *header) error {
		if err := r.reserveMore(ctx, h, n); err != nil || n == 0 {
			return err
		}
		h.length += uint64(n)
		h.words[ringHead] = (h.words[ringHead] + h.words[ringCap] - uint64(n)) % h.words[ringCap]
		r.writeElements(h, 0, b)
		return nil
	})
}

func (r *ring) popBack(ctx context.Context) (b []byte, err error) {
	err = r.withHeader(ctx, func(h *header) error {
		if h.length == 0 {
			return ErrEmpty
		}
		h.length--
		b, err = r.readElements(h, int(h.length), 1)
		return err
	})
	return b, err
}

func (r *ring) popFront(ctx context.Context) (b []byte, err error) {
	err = r.withHeader(ctx, func(h *header) error {
		if h.length == 0 {
			return ErrEmpty
		}
		if b, err = r.readElements(h, 0, 1); err != nil {
			return err
		}
		h.length--
		h.words[ringHead] = (h.words[ringHead] + 1) % h.words[ringCap]
		return nil
	})
	return b, err
}

func (r *ring) insertRange(ctx context.Context, i int, b []byte) error {
	n := len(b) / r.size
	return r.withHeader(ctx, func(h *header) error {
		if err := checkIndex(h, i, 0); err != nil {
			return err
		}
		if err := r.reserveMore(ctx, h, n); err != nil {
			return err
		}
		behind, err := r.readElements(h, i, int(h.length)-i)
		if err != nil {
			return err
		}
		h.length += uint64(n)
		r.writeElements(h, i, append(append(make([]byte, 0, len(b)+len(behind)), b...), behind...))
		return nil
	})
}

func (r *ring) eraseRange(ctx context.Context, i, n int) error {
	return r.withHeader(ctx, func(h *header) error {
		if err := checkIndex(h, i, n); err != nil {
			return err
		}
		behind, err := r.readElements(h, i+n, int(h.length)-i-n)
		if err != nil {
			return err
		}
		h.length -= uint64(n)
		r.writeElements(h, i, behind)
		return nil
	})
}

func (r *ring) clearAll(ctx context.Context) error {
	return r.withHeader(ctx, func(h *header) error {
		h.length, h.words[ringHead] = 0, 0
		return nil
	})
}

func (r *ring) reserveTotal(ctx context.Context, n int) error {
	return r.withHeader(ctx, func(h *header) error { return r.growTo(ctx, h, n) })
}

func (r *ring) loadCapacity(ctx context.Context) (n int, err error) {
	err = r.withHeader(ctx, func(h *header) error {
		n = int(h.words[ringCap])
		return nil
	})
	return n, err
}

// destroyRing frees the ring and its body.
func (r *ring) destroyRing(ctx context.Context) error {
	return r.destroyObject(ctx, func(h *header) error {
		if body := acp.GA(h.words[ringBody]); body != acp.Null {
			return r.s.free(withoutCancel(ctx), body)
		}
		return nil
	})
}
