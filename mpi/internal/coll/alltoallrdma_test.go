package coll_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// TestAddressReuse makes successive calls with the same memory and with other memory, and
// checks that no rank writes to former memory or to a rank that has not called, and that each
// address is sent once.
func TestAddressReuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 9).Draw(t, "n")
		size := rapid.IntRange(1, 9).Draw(t, "size")
		const buffers = 3
		// The index of the buffer that each rank receives into, by call.
		into := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, buffers-1), n, n), 1, 10).Draw(t, "into")
		w := newWorld(n, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		err := w.run(func(r *rank) error {
			c := r.call(coll.Choices{coll.Alltoall: "rdma"})
			send := make([]byte, n*size)
			var recv [buffers][]byte
			for i := range recv {
				recv[i] = make([]byte, n*size)
			}
			for k, which := range into {
				want := make([]byte, 0, n*size)
				for peer := range n {
					for i := range size {
						send[peer*size+i] = byte(k*100 + r.id*10 + peer + i)
						want = append(want, byte(k*100+peer*10+r.id+i))
					}
				}
				got := recv[which[r.id]]
				if err := c.Alltoall(send, got); err != nil {
					return err
				}
				if !bytes.Equal(got, want) {
					return fmt.Errorf("call %d: it has %x, not %x", k, got, want)
				}
			}
			return nil
		})
		require.NoError(t, err)
		changes := 0
		for r := range n {
			for k := range into {
				if k == 0 || into[k][r] != into[k-1][r] {
					changes++
				}
			}
		}
		require.Len(t, w.exposures, changes)
	})
}

// liar sends an invalid number of addresses, or the number of a rank that does not exist.
type liar struct {
	*rank
	count, about byte
}

func (l liar) Isend(to int, b []byte) coll.Request {
	b = bytes.Clone(b)
	switch {
	case len(b) == 8 && b[0] > 0:
		b[0] = l.count
	case len(b) > 8:
		b[0] = l.about
	}
	return l.rank.Isend(to, b)
}

func TestInvalidAddresses(t *testing.T) {
	for _, c := range []struct {
		count, about byte
		want         string
	}{
		{200, 0, "rank 0: address exchange: 200 entries exceed the number of ranks"},
		{1, 7, "rank 0: address exchange: entry of rank 7"},
		{1, 1, "rank 0: address exchange: entry of rank 1"},
	} {
		w := newWorld(2, rand.New(rand.NewPCG(1, 2)))
		_ = w.run(func(r *rank) error {
			call := r.call(coll.Choices{coll.Alltoall: "rdma"})
			if r.id == 0 {
				call.Net = liar{r, c.count, c.about}
			}
			return call.Alltoall(make([]byte, 8), make([]byte, 8))
		})
		require.ErrorContains(t, w.ranks[1].err, c.want)
	}
}
