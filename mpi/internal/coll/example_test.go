package coll_test

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// pipes is a Net of goroutines and channels, one from each rank to each other.
type pipes struct {
	rank int
	to   [][]chan []byte // by sender and receiver
}

// half is a message to be received into b.
type half struct {
	from int
	b    []byte
}

func (p *pipes) Rank() int { return p.rank }
func (p *pipes) Size() int { return len(p.to) }

func (p *pipes) Isend(to int, b []byte) coll.Request {
	p.to[p.rank][to] <- append([]byte(nil), b...)
	return nil
}

func (p *pipes) Irecv(from int, b []byte) coll.Request { return &half{from, b} }

func (p *pipes) Wait(requests ...coll.Request) error {
	for _, r := range requests {
		if r, ok := r.(*half); ok {
			if b := <-p.to[r.from][p.rank]; copy(r.b, b) != len(b) || len(b) != len(r.b) {
				return fmt.Errorf("%d bytes arrived, not %d", len(b), len(r.b))
			}
		}
	}
	return nil
}

// Three ranks add up their vectors.
func Example() {
	add := coll.Reduction{Size: 4, Commutative: true, Reduce: func(inout, in []byte) error {
		for i := 0; i < len(in); i += 4 {
			binary.LittleEndian.PutUint32(inout[i:], binary.LittleEndian.Uint32(inout[i:])+binary.LittleEndian.Uint32(in[i:]))
		}
		return nil
	}}
	const n = 3
	to := make([][]chan []byte, n)
	for i := range to {
		for range n {
			to[i] = append(to[i], make(chan []byte, 64))
		}
	}
	var results [n][]byte
	var ranks sync.WaitGroup
	for rank := range n {
		ranks.Go(func() {
			c := coll.Call{Net: &pipes{rank, to}, Choices: coll.Choices{coll.Allreduce: "ring"}}
			vector := make([]byte, 8)
			binary.LittleEndian.PutUint32(vector, uint32(rank+1))
			binary.LittleEndian.PutUint32(vector[4:], 10)
			if err := c.Allreduce(vector, vector, add); err != nil { // in place
				fmt.Println(err)
			}
			results[rank] = vector
		})
	}
	ranks.Wait()
	for rank, v := range results {
		fmt.Println(rank, binary.LittleEndian.Uint32(v), binary.LittleEndian.Uint32(v[4:]))
	}
	// Output:
	// 0 6 30
	// 1 6 30
	// 2 6 30
}

func ExampleParseChoices() {
	ch, err := coll.ParseChoices("allreduce=ring, alltoall=bruck")
	fmt.Println(ch, err)
	_, err = coll.ParseChoices("barrier=bruck")
	fmt.Println(err)
	// Output:
	// alltoall=bruck,allreduce=ring <nil>
	// coll: algorithm: unknown algorithm "bruck" of barrier: want dissemination, tree, recursive-doubling, linear or shared
}

func ExampleDecide() {
	for _, bytes := range []int{100, 10_000, 100_000} {
		a := coll.Decide(coll.Alltoall, coll.Case{Ranks: 16, Bytes: bytes})
		fmt.Printf("%d bytes for each of 16 ranks: %s\n", bytes, a.Name)
	}
	// Output:
	// 100 bytes for each of 16 ranks: bruck
	// 10000 bytes for each of 16 ranks: direct
	// 100000 bytes for each of 16 ranks: pairwise
}
