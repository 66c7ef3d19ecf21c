package hybrid_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/internal/fabric/hybrid"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// TestConnected checks that both ranks of a pair use the same transport, and that a rank has as
// many connections as the limit permits, or one less if it would be its own partner.
func TestConnected(t *testing.T) {
	for n := 1; n < 20; n++ {
		for limit := range n + 2 {
			for a := range n {
				partners := 0
				for b := range n {
					require.Equal(t, hybrid.UsesConnection(a, b, n, limit), hybrid.UsesConnection(b, a, n, limit))
					if a != b && hybrid.UsesConnection(a, b, n, limit) {
						partners++
					}
				}
				require.LessOrEqual(t, partners, limit)
				require.GreaterOrEqual(t, partners, min(limit, n)-2)
			}
		}
	}
}

// TestMixedTransports exchanges short and long messages between all ranks, and checks the limit on
// connections.
func TestMixedTransports(t *testing.T) {
	const n, limit = 5, 2
	err := mpitest.RunOptions(n, mpi.Options{Net: mpi.Hybrid, RCLimit: limit}, func(w mpi.World) error {
		for _, size := range []int{1, 100, 5000, 300_000} {
			var rs []*mpi.Request
			in := make([][]byte, n)
			for r := range n {
				in[r] = make([]byte, size)
				got, err := w.Irecv(mpi.Of(in[r]), r, size)
				if err != nil {
					return err
				}
				out := make([]byte, size)
				for i := range out {
					out[i] = byte(w.Rank() + 3*r + i)
				}
				sent, err := w.Isend(mpi.Of(out), r, size)
				if err != nil {
					return err
				}
				rs = append(rs, got, sent)
			}
			if _, err := mpi.WaitAll(rs...); err != nil {
				return err
			}
			for r := range n {
				for i, b := range in[r] {
					if b != byte(r+3*w.Rank()+i) {
						return fmt.Errorf("byte %d of %d of rank %d is %d", i, size, r, b)
					}
				}
			}
		}
		s := w.Stats()
		connected := uint64(0)
		for r := range n {
			if r != w.Rank() && hybrid.UsesConnection(w.Rank(), r, n, limit) {
				connected++
			}
		}
		if s.Connections != connected || s.Packets == 0 || s.Datagrams == 0 {
			return fmt.Errorf("rank %d: %+v", w.Rank(), s)
		}
		return nil
	})
	require.NoError(t, err)
}

// TestWindow tests windows over both transports, and Options.ConnectAll.
func TestWindow(t *testing.T) {
	const n = 4
	err := mpitest.RunOptions(n, mpi.Options{Net: mpi.Hybrid, RCLimit: 2, ConnectAll: true}, func(w mpi.World) error {
		win, mine, err := mpi.WinAllocate[int64](w.Comm, n+1)
		if err != nil {
			return err
		}
		if err := win.Fence(); err != nil {
			return err
		}
		for r := range n {
			if err := win.Put(mpi.Of([]int64{int64(10*w.Rank() + r)}), r, mpi.At(w.Rank())); err != nil {
				return err
			}
			if err := win.Accumulate(mpi.Of([]int64{1}), r, mpi.At(n), mpi.Sum); err != nil {
				return err
			}
		}
		if err := win.Fence(); err != nil {
			return err
		}
		for r := range n {
			if mine[r] != int64(10*r+w.Rank()) || mine[n] != n {
				return fmt.Errorf("rank %d has %v", w.Rank(), mine)
			}
		}
		return win.Free()
	})
	require.NoError(t, err)
}
