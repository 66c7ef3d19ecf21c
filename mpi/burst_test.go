package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// TestBurst sends more messages to one rank than it has receive buffers, while it makes no call. It
// must allocate buffers and get every message in order.
func TestBurst(t *testing.T) {
	const n, each = 5, 300
	for _, fast := range []bool{false, true} {
		job(t, n, mpi.Options{RDMA: mpi.RDMAOptions{Receives: 16, Fast: fast}}, func(w mpi.World) error {
			if w.Rank() > 0 {
				rs := make([]*mpi.Request, each)
				for i := range rs {
					var err error
					x := make([]int32, 1+i%400) // some together, some alone
					x[0] = int32(i)
					if rs[i], err = w.Isend(mpi.Of(x), 0, 7); err != nil {
						return err
					}
				}
				if w.Rank() > 1 {
					if _, err := w.Recv(mpi.Of([]byte{0}), w.Rank()-1, 8); err != nil {
						return err
					}
				}
				if err := w.Send(mpi.Of([]byte{1}), (w.Rank()+1)%n, 8); err != nil { // a chain that ends at 0
					return err
				}
				_, err := mpi.WaitAll(rs...)
				return err
			}
			if _, err := w.Recv(mpi.Of([]byte{0}), n-1, 8); err != nil {
				return err
			}
			next := make([]int32, n)
			x := make([]int32, 400)
			for range (n - 1) * each {
				s, err := w.Recv(mpi.Of(x), mpi.AnySource, 7)
				if err != nil {
					return err
				}
				require.Equal(t, next[s.Source], x[0])
				require.Equal(t, 4*(1+int(x[0])%400), s.Bytes)
				next[s.Source]++
			}
			if !fast {
				require.Greater(t, w.Stats().ReceiveBuffers, uint64(16))
				require.NotZero(t, w.Stats().CreditPackets)
			}
			return nil
		})
	}
}
