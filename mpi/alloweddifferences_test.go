package mpi_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/softrnic/softrnic/mpi"
)

// agreedStruct has elements of two types, so that it does not match an array.
type agreedStruct struct {
	A int32
	B float64
}

// agreedCalls are calls with arguments that may differ between ranks.
var agreedCalls = map[string]func(c *mpi.Comm) error{
	"alltoallw: another kind from every rank": func(c *mpi.Comm) error {
		of := func(rank int) mpi.Buffer {
			return []mpi.Buffer{floats(3), mpi.Of(make([]int32, 2)), mpi.Structs(make([]agreedStruct, 2)), mpi.Of([]int8{})}[rank%4]
		}
		var send, recv []mpi.Buffer
		for r := range c.Size() {
			send, recv = append(send, of(c.Rank())), append(recv, of(r))
		}
		return c.Alltoallw(send, recv)
	},
	"alltoallv: nothing, and of another kind": func(c *mpi.Comm) error {
		counts := make([]int, c.Size())
		if c.Rank() == 0 {
			return c.Alltoallv(mpi.Of([]int32{}), counts, nil, mpi.Of([]int8{}), counts, nil)
		}
		for r := 1; r < c.Size(); r++ {
			counts[r] = 2
		}
		return c.Alltoallv(floats(2*c.Size()), counts, nil, floats(2*c.Size()), counts, nil)
	},
	"gatherv: counts, and nothing of another kind": func(c *mpi.Comm) error {
		counts := make([]int, c.Size())
		for r := range counts {
			counts[r] = r
		}
		if c.Rank() == 0 {
			return c.Gatherv(mpi.Of([]int32{}), floats(c.Size()*c.Size()), counts, nil, 1)
		}
		return c.Gatherv(floats(c.Rank()), floats(c.Size()*c.Size()), counts, nil, 1)
	},
	"bcast: structs and arrays of structs": func(c *mpi.Comm) error {
		if c.Rank() == 0 {
			return c.Bcast(mpi.Structs(make([]agreedStruct, 4)), 0)
		}
		return c.Bcast(mpi.Structs(make([][2]agreedStruct, 2)), 0)
	},
	"bcast: apart in memory": func(c *mpi.Comm) error {
		if c.Rank() == 0 {
			return c.Bcast(mpi.Strided(make([]float64, 30), 3, 2, 5), 0)
		}
		return c.Bcast(floats(6), 0)
	},
	"allreduce: one in place": func(c *mpi.Comm) error {
		if c.Rank() == 0 {
			return c.Allreduce(mpi.InPlace, floats(2), mpi.Sum)
		}
		return c.Allreduce(floats(2), floats(2), mpi.Sum)
	},
	"create: disjoint groups": func(c *mpi.Comm) error {
		var ranks []int
		for r := c.Rank() % 2; r < c.Size(); r += 2 {
			ranks = append(ranks, r)
		}
		g, err := c.Group().Incl(ranks...)
		if err != nil {
			return err
		}
		return made(c.Create(g))
	},
	"windows: size and unit": func(c *mpi.Comm) error {
		if c.Rank() == 0 {
			return made(mpi.WinCreate(c, make([]int16, 7)))
		}
		return made(mpi.WinCreate(c, make([]float64, c.Rank())))
	},
	"sends: structs and arrays of structs": func(c *mpi.Comm) error {
		next, last := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		_, err := c.Sendrecv(mpi.Structs(make([]agreedStruct, 4)), next, 0, mpi.Structs(make([][2]agreedStruct, 2)), last, 0)
		return err
	},
}

func floats(n int) mpi.Buffer { return mpi.Of(make([]float64, n)) }

// TestAllowedDifferences checks that arguments that may differ do not cause a mismatch, in any order of
// arrival.
func TestAllowedDifferences(t *testing.T) {
	const ranks, rounds = 4, 20
	for name, o := range map[string]mpi.Options{
		"shared memory": {},
		"rdma":          {NoShared: true},
		"tcp":           {NoShared: true, Net: mpi.TCP},
		"checked":       {Check: true},
	} {
		t.Run(name, func(t *testing.T) {
			job(t, ranks, o, func(w mpi.World) error {
				var all sync.WaitGroup
				var mu sync.Mutex
				var errs error
				for _, name := range slices.Sorted(maps.Keys(agreedCalls)) {
					c, err := w.Dup()
					if err != nil {
						return err
					}
					all.Go(func() {
						var err error
						for range rounds {
							err = errors.Join(err, agreedCalls[name](c))
						}
						if err != nil {
							mu.Lock()
							defer mu.Unlock()
							errs = errors.Join(errs, fmt.Errorf("%s: %w", name, err))
						}
					})
				}
				all.Wait()
				return errs
			})
		})
	}
}
