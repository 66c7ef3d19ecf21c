package data

import (
	"context"
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/softrnic/softrnic/acp"
)

// Adapters access registered memory only, so data is copied through registered staging buffers of a few
// lengths, which are kept for reuse.

// minStaging is the length of the shortest staging buffer in bytes.
const minStaging = 256

// allocStaging returns a staging buffer of at least n bytes.
func (s *Space) allocStaging(n int) (*acp.Region, error) {
	class := bits.Len(uint(max(n, minStaging) - 1))
	s.mu.Lock()
	if free := s.staging[class]; len(free) > 0 {
		last := len(free) - 1
		r := free[last]
		s.staging[class] = free[:last]
		s.mu.Unlock()
		return r, nil
	}
	s.mu.Unlock()
	return s.p.Register(make([]byte, 1<<class))
}

// freeStaging keeps a staging buffer for reuse.
func (s *Space) freeStaging(r *acp.Region) {
	class := bits.Len(uint(len(r.Bytes()) - 1))
	s.mu.Lock()
	s.staging[class] = append(s.staging[class], r)
	s.mu.Unlock()
}

// Copies and atomics are waited for even if the caller's context ends, because a partial change would damage
// the structure. The wait is bounded, because the adapter fails operations on a lost rank.

// readBytes reads memory of any rank.
func (s *Space) readBytes(from acp.GA, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	r, err := s.allocStaging(len(b))
	if err != nil {
		return err
	}
	defer s.freeStaging(r)
	g := s.p.NewGroup()
	g.Copy(r.GA(0), from, len(b))
	if err := g.Wait(context.Background()); err != nil {
		return err
	}
	copy(b, r.Bytes())
	return nil
}

// pendingWrite is data to be written to an address, or a number to be added to the word there by an atomic.
type pendingWrite struct {
	to  acp.GA
	b   []byte
	add uint64
}

// writeAll executes writes to memory of any ranks concurrently.
func (s *Space) writeAll(pieces ...pendingWrite) error {
	return s.writeThen(s.p.NewGroup(), pieces, func() {})
}

// writeThen executes writes in a group, followed by the operations that behind starts, and waits for all. It
// calls behind even if the writes cannot be started.
func (s *Space) writeThen(g *acp.Group, pieces []pendingWrite, behind func()) error {
	n := 0
	for _, p := range pieces {
		n += len(p.b)
	}
	r, err := s.allocStaging(n)
	if err != nil {
		behind()
		return errors.Join(err, g.Wait(context.Background()))
	}
	defer s.freeStaging(r)
	off := 0
	for _, p := range pieces {
		if p.add != 0 {
			g.FetchAdd(nil, p.to, p.add)
		}
		if len(p.b) > 0 {
			copy(r.Bytes()[off:], p.b)
			g.Copy(p.to, r.GA(off), len(p.b))
			off += len(p.b)
		}
	}
	behind()
	return g.Wait(context.Background())
}

// copyBytes copies between any two addresses.
func (s *Space) copyBytes(to, from acp.GA, n int) error {
	g := s.p.NewGroup()
	g.Copy(to, from, n)
	return g.Wait(context.Background())
}

// compareSwap stores value if the word equals compare, and returns the previous word.
func (s *Space) compareSwap(at acp.GA, compare, value uint64) (found uint64, err error) {
	g := s.p.NewGroup()
	g.CompareSwap(&found, at, compare, value)
	return found, g.Wait(context.Background())
}

// fetchAdd adds to a word, and returns the previous word. Adding 0 is an atomic read.
func (s *Space) fetchAdd(at acp.GA, value uint64) (found uint64, err error) {
	g := s.p.NewGroup()
	g.FetchAdd(&found, at, value)
	return found, g.Wait(context.Background())
}

// Words have 8 bytes in native byte order, which is the same at all ranks: package acp checks it.

// getWords reads words.
func (s *Space) getWords(from acp.GA, w []uint64) error {
	b := make([]byte, 8*len(w))
	if err := s.readBytes(from, b); err != nil {
		return err
	}
	copy(w, parseWords(b))
	return nil
}

// parseWords returns the words of b.
func parseWords(b []byte) []uint64 {
	w := make([]uint64, len(b)/8)
	for i := range w {
		w[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return w
}

// wordBytes returns the memory of words.
func wordBytes(w ...uint64) []byte {
	b := make([]byte, 0, 8*len(w))
	for _, v := range w {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}
