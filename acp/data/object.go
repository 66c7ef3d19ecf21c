package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp"
)

// object is a structure with a single lock: a vector, a deque or a list. It begins with a header:
//
//	0    lock and kind
//	8    layout hash of the element type
//	16   length of an element in bytes, or anySize
//	24   number of elements
//	32   three words that depend on the kind
type object struct {
	s      *Space
	ga     acp.GA
	kind   kind
	size   int
	layout uint64
}

// header is the words after the lock.
type header struct {
	layout, size, length uint64
	words                [3]uint64

	writes  []pendingWrite // not part of the memory: writes to be executed together with that of the header,
	garbage acp.GA         // and a block to be freed then
}

const (
	headerSize  = 56
	headerWords = headerSize/8 - 1
)

// encodeWords returns the words of the header in memory.
func (h *header) encodeWords() [headerWords]uint64 {
	return [headerWords]uint64{h.layout, h.size, h.length, h.words[0], h.words[1], h.words[2]}
}

// parseHeader decodes the words of a header.
func parseHeader(w [headerWords]uint64) header {
	return header{layout: w[0], size: w[1], length: w[2], words: [3]uint64{w[3], w[4], w[5]}}
}

// GA returns the address of the structure, by which other ranks open it.
func (o *object) GA() acp.GA { return o.ga }

func (o *object) String() string { return fmt.Sprintf("%v at %v", o.kind, o.ga) }

// newError wraps the error of a method.
func (o *object) newError(op string, err error) error { return o.s.newError(op, o.String(), err) }

// createObject allocates an object without elements at a rank.
func (o *object) createObject(ctx context.Context, rank int) (err error) {
	if o.ga, err = o.s.malloc(ctx, rank, headerSize); err != nil {
		return err
	}
	h := header{layout: o.layout, size: uint64(o.size)}
	w := h.encodeWords()
	return o.s.writeAll(pendingWrite{to: o.ga, b: wordBytes(append([]uint64{o.kind.freeWord()}, w[:]...)...)})
}

// checkExists checks the kind and the element type of the object.
func (o *object) checkExists(ctx context.Context) error {
	return o.withLock(ctx, func(*header) error { return nil })
}

// checkType compares the element type of a header with that of the handle.
func (o *object) checkType(h *header) error {
	if h.layout != o.layout || h.size != uint64(o.size) {
		return fmt.Errorf("%w: stored elements have %s, want %s", ErrType, sizeString(h.size), sizeString(uint64(o.size)))
	}
	return nil
}

func sizeString(size uint64) string {
	if size == ^uint64(0) {
		return "any number of bytes"
	}
	return fmt.Sprintf("%d bytes each", size)
}

// withLock calls f with the object locked and its header. Changes of the header and its pending writes are
// executed unless f returns an error.
func (o *object) withLock(ctx context.Context, f func(h *header) error) error {
	return o.withLockAs(ctx, o.kind, f)
}

// withLockAs is withLock that changes the kind of the object to next.
func (o *object) withLockAs(ctx context.Context, next kind, f func(h *header) error) error {
	mine, err := o.s.lockStruct(ctx, o.ga, o.kind)
	if err != nil {
		return err
	}
	h, err := o.applyChange(f)
	if err != nil {
		return errors.Join(err, o.s.unlockStruct(o.ga, mine, o.kind.freeWord()))
	}
	err = o.s.unlockStruct(o.ga, mine, next.freeWord(), h.writes...)
	if err == nil && h.garbage != acp.Null {
		err = o.s.free(withoutCancel(ctx), h.garbage)
	}
	return err
}

// applyChange reads the header and calls f with it. If the header has changed, its write becomes the last
// pending one.
func (o *object) applyChange(f func(h *header) error) (h header, err error) {
	var was [headerWords]uint64
	if err = o.s.getWords(o.ga.Add(8), was[:]); err != nil {
		return h, err
	}
	h = parseHeader(was)
	if err = o.checkType(&h); err != nil {
		return h, err
	}
	if err = f(&h); err != nil {
		return h, err
	}
	if is := h.encodeWords(); is != was {
		h.writes = append(h.writes, pendingWrite{to: o.ga.Add(8), b: wordBytes(is[:]...)})
	}
	return h, nil
}

// Len returns the number of elements.
func (o *object) Len(ctx context.Context) (n int, err error) {
	err = o.withLock(ctx, func(h *header) error {
		n = int(h.length)
		return nil
	})
	return n, o.newError("len", err)
}

// destroyObject marks the object as destroyed and frees it. contents frees the blocks that it refers to.
func (o *object) destroyObject(ctx context.Context, contents func(h *header) error) error {
	err := o.withLockAs(ctx, kindDead, contents)
	if err == nil {
		err = o.s.free(withoutCancel(ctx), o.ga)
	}
	return err
}
