package coll_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// operation is a reduction with a source of elements.
type operation struct {
	coll.Reduction
	name string
	make func(rng *rand.Rand, rank int) []byte // returns an element
}

// reduction returns a reduction that checks the guarantees for its operands.
func reduction(size int, commutative bool, one func(inout, in []byte) error) coll.Reduction {
	return coll.Reduction{Size: size, Commutative: commutative, Reduce: func(inout, in []byte) error {
		if len(in) != len(inout) || len(in) == 0 || len(in)%size != 0 {
			return fmt.Errorf("%d and %d bytes are to be combined, of elements of %d", len(in), len(inout), size)
		}
		for ; len(in) > 0; in, inout = in[size:], inout[size:] {
			if err := one(inout[:size], in[:size]); err != nil {
				return err
			}
		}
		return nil
	}}
}

var (
	sum = operation{reduction(4, true, func(inout, in []byte) error {
		binary.LittleEndian.PutUint32(inout, binary.LittleEndian.Uint32(inout)+binary.LittleEndian.Uint32(in))
		return nil
	}), "sum", func(rng *rand.Rand, _ int) []byte { return binary.LittleEndian.AppendUint32(nil, rng.Uint32()) }}

	// matrices of 2x2 bytes, modulo 251
	product = operation{reduction(4, false, func(inout, in []byte) error {
		dot := func(i, j int) byte {
			return byte((int(in[2*i])*int(inout[j]) + int(in[2*i+1])*int(inout[2+j])) % 251)
		}
		copy(inout, []byte{dot(0, 0), dot(0, 1), dot(1, 0), dot(1, 1)})
		return nil
	}), "matrix", func(rng *rand.Rand, _ int) []byte {
		for {
			m := []byte{byte(rng.IntN(251)), byte(rng.IntN(251)), byte(rng.IntN(251)), byte(rng.IntN(251))}
			if (int(m[0])*int(m[3])-int(m[1])*int(m[2]))%251 != 0 { // or everything becomes 0
				return m
			}
		}
	}}

	// ranges of ranks; only adjacent ones can be combined
	interval = operation{reduction(2, false, func(inout, in []byte) error {
		if in[1] != inout[0] {
			return fmt.Errorf("ranks [%d, %d) are combined with [%d, %d)", in[0], in[1], inout[0], inout[1])
		}
		inout[0] = in[0]
		return nil
	}), "interval", func(_ *rand.Rand, rank int) []byte { return []byte{byte(rank), byte(rank + 1)} }}

	operations = []operation{sum, product, interval}
)

// scenario is a collective call of all ranks.
type scenario struct {
	what      coll.Collective
	algorithm string // "": the default
	n, root   int
	size      int // elements of a reduction, else bytes of a block
	inPlace   bool
	op        operation
	window    int
	segment   int
	seed      uint64
}

func (s scenario) String() string {
	return fmt.Sprintf("%v by %q: %d ranks, root %d, size %d, in place %v, %s, window %d, segment %d, seed %d",
		s.what, s.algorithm, s.n, s.root, s.size, s.inPlace, s.op.name, s.window, s.segment, s.seed)
}

// possible reports whether the algorithm supports the call.
func (s scenario) possible() bool {
	for _, a := range coll.Algorithms(s.what) {
		if a.Name == s.algorithm {
			r := &rank{}
			if s.shared() {
				r.w = &world{boards: &boards{}}
			}
			return coll.Supports(a, coll.Case{Ranks: s.n, Commutative: s.op.Commutative, Predefined: true, Net: r})
		}
	}
	return s.algorithm == ""
}

// shared reports whether the ranks need shared memory.
func (s scenario) shared() bool { return strings.HasPrefix(s.algorithm, "shared") }

// run makes the call, in a random order of events, and compares the result with the definition of
// the collective.
func (s scenario) run(w *world) error {
	rng := rand.New(rand.NewPCG(s.seed, 1))
	if s.shared() {
		w.share()
		if s.algorithm == "shared-parts" { // several chunks
			w.shareRoom(s.op.Size + rng.IntN(50))
		}
		s.op.Predefined = true
	}
	want := s.expect(rng)
	err := w.run(func(r *rank) error {
		c := r.call(nil)
		if s.algorithm != "" {
			c.Choices = coll.Choices{s.what: s.algorithm}
		}
		c.Window, c.Segment = s.window, s.segment
		got, err := want.call(c, r.id)
		if err != nil {
			return err
		}
		if !bytes.Equal(want.results[r.id], got) {
			return fmt.Errorf("%v: it has\n%x, not\n%x", s, got, want.results[r.id])
		}
		return nil
	})
	if err == nil && s.shared() && w.messages > 0 {
		err = fmt.Errorf("%v: %d messages", s, w.messages)
	}
	return err
}

// expected is the call of a rank, and its memory afterwards.
type expected struct {
	call    func(c *coll.Call, rank int) (result []byte, err error)
	results [][]byte
}

// filled returns n random bytes.
func filled(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// randomParts returns n random disjoint parts of random memory, with or without gaps and in any
// order, of lengths up to most.
func randomParts(rng *rand.Rand, n, most int) (parts []coll.Part, length int) {
	parts = make([]coll.Part, n)
	gaps, shuffled := rng.IntN(2) == 0, rng.IntN(2) == 0
	order := rng.Perm(n)
	for i := range n {
		k := i
		if shuffled {
			k = order[i]
		}
		if gaps {
			length += rng.IntN(3)
		}
		parts[k] = coll.Part{At: length, Len: rng.IntN(most + 1)}
		length += parts[k].Len
	}
	return parts, length + rng.IntN(2)
}

// partOf returns a part of memory.
func partOf(mem []byte, p coll.Part) []byte { return mem[p.At:][:p.Len] }

// expect draws data and computes the result.
func (s scenario) expect(rng *rand.Rand) expected {
	switch s.what {
	case coll.Barrier:
		return expected{func(c *coll.Call, _ int) ([]byte, error) { return nil, c.Barrier() }, make([][]byte, s.n)}
	case coll.Reduce, coll.Allreduce, coll.ReduceScatter, coll.ReduceScatterBlock, coll.Scan, coll.Exscan:
		return s.expectReduction(rng)
	case coll.Alltoall, coll.Alltoallv, coll.Alltoallw:
		return s.expectAlltoall(rng)
	}
	return s.expectMoved(rng)
}
