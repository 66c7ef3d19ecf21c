package mpi_test

import (
	"errors"
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

// TestRails reads and writes long messages over several queue pairs, which connect during the
// transfers, also with packet loss.
func TestRails(t *testing.T) {
	for name, scheme := range map[string]mpi.Rendezvous{"read": mpi.RendezvousRead, "write": mpi.RendezvousWrite} {
		for _, loss := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s loss %v", name, loss), func(t *testing.T) {
				jobOn(t, openLossy(loss), 3, mpi.Options{NoShared: true, RDMA: mpi.RDMAOptions{Rails: 3, Rendezvous: scheme}}, func(w mpi.World) error {
					next, last := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
					for i := 0; ; i++ {
						out, in := railsPayload(w.Rank(), i), railsPayload(last, i)
						want := slices.Clone(in)
						clear(in)
						_, err := w.Sendrecv(mpi.Of(out), next, 1, mpi.Of(in), last, 1)
						require.NoError(t, err)
						if !slices.Equal(in, want) {
							return fmt.Errorf("message %d of %d words is not what was sent", i, len(want))
						}
						if done, err := railsUsed(w, i); done || err != nil {
							return err
						}
					}
				})
			})
		}
	}
}

// TestRailsPut checks that the data of long puts is there after a fence, also with packet loss.
func TestRailsPut(t *testing.T) {
	for _, loss := range []bool{false, true} {
		t.Run(fmt.Sprintf("loss %v", loss), func(t *testing.T) {
			jobOn(t, openLossy(loss), 3, mpi.Options{NoShared: true, RDMA: mpi.RDMAOptions{Rails: 3}}, func(w mpi.World) error {
				next, last := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
				mem := make([]uint64, 256<<10)
				win, err := mpi.WinCreate(w.Comm, mem)
				require.NoError(t, err)
				for i := 0; ; i++ {
					require.NoError(t, win.Fence())
					require.NoError(t, win.Put(mpi.Of(railsPayload(w.Rank(), i)), next, mpi.At(0)))
					require.NoError(t, win.Fence())
					if want := railsPayload(last, i); !slices.Equal(mem[:len(want)], want) {
						return fmt.Errorf("put %d of %d words is not what was put", i, len(want))
					}
					if done, err := railsUsed(w, i); done || err != nil {
						return errors.Join(err, win.Free())
					}
				}
			})
		})
	}
}

// openLossy returns a function that opens devices, which may lose packets.
func openLossy(loss bool) func() (verbs.Device, error) {
	var seed atomic.Int64
	return func() (verbs.Device, error) {
		o := rnic.Options{}
		if loss {
			o.Impair = fmt.Sprintf("loss 1%% seed %d", seed.Add(1))
		}
		return rnic.Open(o)
	}
}

// railsPayload returns the words that a rank sends in round i.
func railsPayload(rank, i int) []uint64 {
	words := make([]uint64, (700<<10+i*300007%(1<<20))/8)
	for j := range words {
		words[j] = uint64(rank)<<40 | uint64(i)<<32 | uint64(j)
	}
	return words
}

// railsUsed reports whether all ranks have used their rails by round i.
func railsUsed(w mpi.World, i int) (bool, error) {
	used, all := []int64{0}, []int64{0}
	if s := w.Stats(); i > 6 && s.Stripes > 6 && s.Rails == 4 {
		used[0] = 1
	}
	err := w.Allreduce(mpi.Of(used), mpi.Of(all), mpi.Min)
	return all[0] == 1, err
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
