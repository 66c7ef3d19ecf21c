package hybrid_test

import (
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
	content := func(from, to, size int) []byte {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(from + 3*to + i)
		}
		return b
	}
	require.NoError(t, mpitest.RunOptions(n, mpi.Options{Net: mpi.Hybrid, RCLimit: limit}, func(w mpi.World) error {
		for _, size := range []int{1, 100, 5000, 300_000} {
			var rs []*mpi.Request
			in := make([][]byte, n)
			for r := range n {
				in[r] = make([]byte, size)
				got, err := w.Irecv(mpi.Of(in[r]), r, size)
				require.NoError(t, err)
				sent, err := w.Isend(mpi.Of(content(w.Rank(), r, size)), r, size)
				require.NoError(t, err)
				rs = append(rs, got, sent)
			}
			_, err := mpi.WaitAll(rs...)
			require.NoError(t, err)
			for r := range n {
				require.Equal(t, content(r, w.Rank(), size), in[r])
			}
		}
		s := w.Stats()
		connected := uint64(0)
		for r := range n {
			if r != w.Rank() && hybrid.UsesConnection(w.Rank(), r, n, limit) {
				connected++
			}
		}
		require.Equal(t, connected, s.Connections)
		require.NotZero(t, s.Packets)
		require.NotZero(t, s.Datagrams)
		return nil
	}))
}

// TestWindow tests windows over both transports, and Options.ConnectAll.
func TestWindow(t *testing.T) {
	const n = 4
	require.NoError(t, mpitest.RunOptions(n, mpi.Options{Net: mpi.Hybrid, RCLimit: 2, ConnectAll: true}, func(w mpi.World) error {
		win, mine, err := mpi.WinAllocate[int64](w.Comm, n+1)
		require.NoError(t, err)
		require.NoError(t, win.Fence())
		for r := range n {
			require.NoError(t, win.Put(mpi.Of([]int64{int64(10*w.Rank() + r)}), r, mpi.At(w.Rank())))
			require.NoError(t, win.Accumulate(mpi.Of([]int64{1}), r, mpi.At(n), mpi.Sum))
		}
		require.NoError(t, win.Fence())
		for r := range n {
			require.EqualValues(t, 10*r+w.Rank(), mine[r])
			require.EqualValues(t, n, mine[n])
		}
		return win.Free()
	}))
}
