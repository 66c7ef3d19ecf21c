package data

import (
	"context"
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/softrnic/softrnic/acp"
)

// Adapters read and write registered memory only, so what is copied comes through stages: pieces of it that belong to
// this rank, of a few lengths, which are kept for the next copy.

// stageMin is the shortest stage, in bytes.
const stageMin = 256

// stage returns memory of at least n bytes, to be given back.
func (s *Space) stage(n int) (*acp.Region, error) {
	class := bits.Len(uint(max(n, stageMin) - 1))
	s.mu.Lock()
	if free := s.stages[class]; len(free) > 0 {
		last := len(free) - 1
		r := free[last]
		s.stages[class] = free[:last]
		s.mu.Unlock()
		return r, nil
	}
	s.mu.Unlock()
	return s.p.Register(make([]byte, 1<<class))
}

// unstage gives it back.
func (s *Space) unstage(r *acp.Region) {
	class := bits.Len(uint(len(r.Bytes()) - 1))
	s.mu.Lock()
	s.stages[class] = append(s.stages[class], r)
	s.mu.Unlock()
}

// Copies and atomics, once begun, are waited for whatever becomes of the caller's context: half of a change is worse than
// all of it. It takes no longer than the adapters' patience with a rank that is lost.

// get reads memory of any rank.
func (s *Space) get(from acp.GA, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	r, err := s.stage(len(b))
	if err != nil {
		return err
	}
	defer s.unstage(r)
	g := s.p.NewGroup()
	g.Copy(r.GA(0), from, len(b))
	if err := g.Wait(context.Background()); err != nil {
		return err
	}
	copy(b, r.Bytes())
	return nil
}

// piece is bytes and where they go, or what is added to the word there by an atomic.
type piece struct {
	to  acp.GA
	b   []byte
	add uint64
}

// put writes memory of any rank: several pieces at the same time.
func (s *Space) put(pieces ...piece) error { return s.write(s.p.NewGroup(), pieces, func() {}) }

// write is put in a group, and something behind it, whatever comes of it.
func (s *Space) write(g *acp.Group, pieces []piece, behind func()) error {
	n := 0
	for _, p := range pieces {
		n += len(p.b)
	}
	r, err := s.stage(n)
	if err != nil {
		behind()
		return errors.Join(err, g.Wait(context.Background()))
	}
	defer s.unstage(r)
	off := 0
	for _, p := range pieces {
		if p.add != 0 {
			g.Add8(nil, p.to, p.add)
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

// move copies from anywhere to anywhere.
func (s *Space) move(to, from acp.GA, n int) error {
	g := s.p.NewGroup()
	g.Copy(to, from, n)
	return g.Wait(context.Background())
}

// swap stores value at an address if there is compare, and returns what there was.
func (s *Space) swap(at acp.GA, compare, value uint64) (found uint64, err error) {
	g := s.p.NewGroup()
	g.CompareSwap8(&found, at, compare, value)
	return found, g.Wait(context.Background())
}

// add adds to a word, and returns what there was. A word that is added to is read by adding nothing.
func (s *Space) add(at acp.GA, value uint64) (found uint64, err error) {
	g := s.p.NewGroup()
	g.Add8(&found, at, value)
	return found, g.Wait(context.Background())
}

// Words are 8 bytes in the order of the machine, which all ranks share: package acp sees to it.

// getWords reads words.
func (s *Space) getWords(from acp.GA, w []uint64) error {
	b := make([]byte, 8*len(w))
	if err := s.get(from, b); err != nil {
		return err
	}
	copy(w, words(b))
	return nil
}

// words are the words of bytes.
func words(b []byte) []uint64 {
	w := make([]uint64, len(b)/8)
	for i := range w {
		w[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return w
}

// wordBytes are words as they are in memory.
func wordBytes(w ...uint64) []byte {
	b := make([]byte, 0, 8*len(w))
	for _, v := range w {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}
