package coll_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
)

// TestBoardManyCalls makes successive calls in shared memory, with random roots and sizes, and
// checks that no rank overwrites data that another one still reads.
func TestBoardManyCalls(t *testing.T) {
	const n, calls = 5, 40
	for seed := range uint64(30) {
		w := newWorld(n, rand.New(rand.NewPCG(seed, 5)))
		w.share()
		err := w.run(func(r *rank) error {
			c := r.call(nil)
			same := rand.New(rand.NewPCG(seed, 6)) // at all ranks
			for i := range calls {
				root, size := same.IntN(n), same.IntN(50)
				buf := bytes.Repeat([]byte{byte(r.id + i)}, size)
				var err error
				want := bytes.Repeat([]byte{byte(root + i)}, size)
				switch same.IntN(3) {
				case 0:
					err = c.Barrier()
					want = buf
				case 1:
					err = c.Bcast(root, buf)
				case 2:
					all := make([]byte, n*size)
					err = c.Allgather(buf, all)
					buf = all[root*size:][:size]
				}
				if err != nil {
					return err
				}
				if !bytes.Equal(want, buf) {
					w.failf("call %d at rank %d: %x, not %x", i, r.id, buf, want)
				}
			}
			return nil
		})
		require.NoError(t, err, "seed %d", seed)
		require.Zero(t, w.messages)
	}
}

// TestBoardOtherCalls checks the error of a rank whose call differs from another rank's.
func TestBoardOtherCalls(t *testing.T) {
	for want, call := range map[string]func(c *coll.Call) error{
		"rank 1 calls barrier, not allgather of 8 bytes": (*coll.Call).Barrier,
		"rank 1 calls allgather of 10 bytes, not allgather of 8 bytes": func(c *coll.Call) error {
			return c.Allgather(make([]byte, 5), make([]byte, 10))
		},
		"rank 1 calls bcast of 3 bytes with root 1, not allgather of 8 bytes": func(c *coll.Call) error {
			return c.Bcast(1, make([]byte, 3))
		},
	} {
		w := newWorld(2, nil)
		w.share()
		var got error
		err := w.run(func(r *rank) error {
			if r.id == 1 {
				_ = call(r.call(nil)) // may detect it, too
				return nil
			}
			got = r.call(nil).Allgather(make([]byte, 4), make([]byte, 8))
			return nil
		})
		require.NoError(t, err)
		require.ErrorIs(t, got, deadlock.ErrMismatch)
		require.ErrorContains(t, got, want)
	}
}

// TestBoardOtherBlocks checks the error of ranks whose parts differ.
func TestBoardOtherBlocks(t *testing.T) {
	w := newWorld(2, nil)
	w.share()
	errs := make([]error, 2)
	require.NoError(t, w.run(func(r *rank) error {
		cut := 1 + r.id // the length of the part of rank 0, which each rank states
		parts := []coll.Part{{At: 0, Len: cut}, {At: cut, Len: 4 - cut}}
		errs[r.id] = r.call(nil).Allgatherv(make([]byte, parts[r.id].Len), make([]byte, 4), parts)
		return nil
	}))
	for _, err := range errs {
		require.ErrorIs(t, err, deadlock.ErrMismatch)
		require.ErrorContains(t, err, "calls allgatherv of 4 bytes in other pieces, not the same")
	}
}

// TestDecideShared checks that calls use shared memory if it exists and is large enough.
func TestDecideShared(t *testing.T) {
	w := newWorld(4, nil)
	w.share()
	for _, what := range coll.Collectives() {
		for _, c := range []struct {
			bytes int
			want  bool
		}{{8, true}, {boardRoom + 1, false}} {
			a := coll.Decide(what, coll.Case{Ranks: 4, Bytes: c.bytes, Commutative: true, Predefined: true, Net: w.ranks[0]})
			switch what {
			case coll.Barrier:
				require.Equal(t, "shared", a.Name)
			case coll.Allreduce:
				require.Equal(t, map[bool]string{true: "shared", false: "shared-parts"}[c.want], a.Name)
			case coll.Gatherv, coll.Scatterv, coll.Alltoallv, coll.Alltoallw: // not all ranks know their sizes
				require.NotEqual(t, "shared", a.Name, what)
			default:
				require.Equal(t, c.want, a.Name == "shared", "%v of %d bytes", what, c.bytes)
			}
			require.NotEqual(t, "shared", coll.Decide(what, coll.Case{Ranks: 4, Bytes: c.bytes, Net: &rank{}}).Name)
			if reducing(what) { // with a function of the program
				require.NotEqual(t, "shared", coll.Decide(what, coll.Case{Ranks: 4, Bytes: c.bytes, Net: w.ranks[0]}).Name)
			}
		}
	}
}
