package mpi_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestRails reads long messages over several queue pairs, which connect during the transfers,
// also with packet loss.
func TestRails(t *testing.T) {
	for _, loss := range []bool{false, true} {
		t.Run(fmt.Sprintf("loss %v", loss), func(t *testing.T) {
			var seed atomic.Int64
			lossy := func() (verbs.Device, error) {
				o := rnic.Options{}
				if loss {
					o.Impair = fmt.Sprintf("loss 1%% seed %d", seed.Add(1))
				}
				return rnic.Open(o)
			}
			jobOn(t, lossy, 3, mpi.Options{NoShared: true, RDMA: mpi.RDMAOptions{Rails: 3}}, func(w mpi.World) error {
				next, last := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
				for i := 0; ; i++ {
					n := 700<<10 + i*300007%(1<<20)
					out, in := make([]uint64, n/8), make([]uint64, n/8)
					for j := range out {
						out[j] = uint64(w.Rank())<<40 | uint64(i)<<32 | uint64(j)
					}
					_, err := w.Sendrecv(mpi.Of(out), next, 1, mpi.Of(in), last, 1)
					require.NoError(t, err)
					for j := range out {
						out[j] += uint64(last-w.Rank()) << 40
					}
					if !slices.Equal(in, out) {
						return fmt.Errorf("message %d of %d bytes is not what was sent", i, n)
					}
					rails := []int64{0}
					if i > 6 && w.Stats().Stripes > 6 && w.Stats().Rails == 4 {
						rails[0] = 1
					}
					all := []int64{0}
					if err := w.Allreduce(mpi.Of(rails), mpi.Of(all), mpi.Min); err != nil || all[0] == 1 {
						return err
					}
				}
			})
		})
	}
}

// TestRailsLostRank checks that a rank that receives a long message gets an error when the
// sender fails.
func TestRailsLostRank(t *testing.T) {
	ends := make(chan error, 2)
	for i, m := range pmi.NewLocal(2) {
		go func() {
			w, err := mpi.Init(open, mpi.Options{Manager: m, RDMA: mpi.RDMAOptions{Rails: 4, Connect: hasty}})
			if err != nil {
				ends <- err
				return
			}
			defer w.Vanish()
			data := make([]byte, 8<<20)
			for round := 0; err == nil; round++ {
				if i == 0 {
					_, err = w.Recv(mpi.Of(data), 1, 0)
				} else if err = w.Send(mpi.Of(data), 0, 0); round == 5 {
					_, _ = w.Isend(mpi.Of(data), 0, 0)
					break
				}
			}
			ends <- err
		}()
	}
	first, second := <-ends, <-ends
	require.NoError(t, first, "the rank that exits gets no error")
	require.ErrorIs(t, second, mpi.ErrLost)
}
