package mpi_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// eachFlow runs f with each flow control of the paper, with few credits.
func eachFlow(t *testing.T, f func(t *testing.T, o mpi.Options)) {
	for _, m := range []mpi.Flow{mpi.FlowCredit, mpi.FlowRDMA, mpi.FlowNIC} {
		t.Run(m.String(), func(t *testing.T) {
			f(t, mpi.Options{NoShared: true, RDMA: mpi.RDMAOptions{Flow: m, Credits: 4}})
		})
	}
}

// TestFlowPrograms runs all collective calls in packets, with checked arguments.
func TestFlowPrograms(t *testing.T) {
	eachFlow(t, func(t *testing.T, o mpi.Options) {
		o.Check = true
		job(t, 4, o, func(w mpi.World) error { return run(w, programOfAllCalls(4)) })
	})
}

// TestFlowImpaired is TestFlowPrograms over a bad network.
func TestFlowImpaired(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	eachFlow(t, func(t *testing.T, o mpi.Options) {
		open, faults := impaired(fmt.Sprintf("loss 2%% duplicate 1%% delay 200us reorder 99%% seed %d", seed))
		jobOn(t, open, 4, o, func(w mpi.World) error { return run(w, programOfAllCalls(4)) })
		require.NotZero(t, faults().Lost)
	})
}

// fillMessage fills message i of a rank.
func fillMessage(b []byte, rank, i int) {
	for off := 0; off+8 <= len(b); off += 8 {
		binary.LittleEndian.PutUint64(b[off:], uint64(rank)<<48|uint64(i)<<24|uint64(off))
	}
}

// TestFlowFlood lets three ranks send to all others, without receiving, far more messages than
// credits and rings permit, of lengths on both sides of the eager threshold. Each waits for the
// messages, which arrive in order, while the others' rings are full too.
func TestFlowFlood(t *testing.T) {
	eachFlow(t, func(t *testing.T, o mpi.Options) {
		for _, eager := range []int{64, 0} {
			const n, messages = 3, 600
			o.RDMA.Eager = eager
			job(t, n, o, func(w mpi.World) error {
				lengths := func(rank, i int) int {
					r := rand.New(rand.NewPCG(uint64(rank), uint64(i)))
					return []int{r.IntN(80), r.IntN(2000), r.IntN(20_000)}[r.IntN(3)]
				}
				var sends []*mpi.Request
				for i := range messages {
					for to := range n {
						if to == w.Rank() {
							continue
						}
						b := make([]byte, lengths(w.Rank(), i))
						fillMessage(b, w.Rank(), i)
						r, err := w.Isend(mpi.Of(b), to, 1)
						if err != nil {
							return err
						}
						sends = append(sends, r)
					}
				}
				for from := range n {
					for i := range messages {
						if from == w.Rank() {
							continue
						}
						want, got := make([]byte, lengths(from, i)), make([]byte, 20_000)
						fillMessage(want, from, i)
						s, err := w.Recv(mpi.Of(got), from, 1)
						if err != nil {
							return err
						}
						require.Equal(t, len(want), s.Bytes, "message %d of rank %d", i, from)
						require.Equal(t, want, got[:s.Bytes], "message %d of rank %d", i, from)
					}
				}
				_, err := mpi.WaitAll(sends...)
				return err
			})
		}
	})
}

// TestFlowDiffers checks that ranks with different flow controls do not connect, and that both
// name the reason.
func TestFlowDiffers(t *testing.T) {
	errs := make(chan error, 2)
	for i, m := range pmi.NewLocal(2) {
		go func() {
			errs <- func() error {
				flow := []mpi.Flow{mpi.FlowRDMA, mpi.FlowNIC}[i]
				w, err := mpi.Init(open, mpi.Options{Manager: m, NoShared: true, RDMA: mpi.RDMAOptions{Flow: flow}})
				if err != nil {
					return err
				}
				defer w.Vanish()
				_, err = w.Recv(mpi.Of([]byte{0}), 1-i, 0)
				if i == 1 {
					err = w.Send(mpi.Of([]byte{0}), 1-i, 0)
				}
				return err
			}()
		}()
	}
	for range 2 {
		err := <-errs
		require.ErrorIs(t, err, mpi.ErrLost)
		require.ErrorContains(t, err, "ranks differ in Options.Flow: rank 0 has rdma, rank 1 nic")
	}
}

// TestFlowLostRank checks that ranks which wait for room at a failed rank, or for its messages,
// get an error.
func TestFlowLostRank(t *testing.T) {
	eachFlow(t, func(t *testing.T, o mpi.Options) {
		err := loseLast(3, o, func(w mpi.World) (func(<-chan struct{}) error, error) {
			x := make([]byte, 1000)
			if w.Rank() == 2 {
				for from := range 2 {
					if _, err := w.Recv(mpi.Of(x), from, 0); err != nil {
						return nil, err
					}
				}
				return nil, nil
			}
			if err := w.Send(mpi.Of(x), 2, 0); err != nil {
				return nil, err
			}
			return func(gone <-chan struct{}) error {
				var err error
				if w.Rank() == 0 {
					_, err = w.Recv(mpi.Of(x), 2, 0)
				} else {
					for err == nil {
						err = w.Send(mpi.Of(x), 2, 1)
					}
				}
				if !errors.Is(err, mpi.ErrLost) {
					return fmt.Errorf("want ErrLost, got %w", err)
				}
				return nil
			}, nil
		})
		require.NoError(t, err)
	})
}

// TestFlowMemory checks that the packets of a peer take no more memory than 64 buffers of 8 KiB,
// whichever the flow control, after traffic that fills the rings.
func TestFlowMemory(t *testing.T) {
	eachFlow(t, func(t *testing.T, o mpi.Options) {
		o.RDMA.Credits = 0 // 64
		job(t, 3, o, func(w mpi.World) error {
			for to := range 3 {
				for range 200 {
					if to != w.Rank() {
						if _, err := w.Isend(mpi.Of(make([]byte, 8000)), to, 0); err != nil {
							return err
						}
					}
				}
			}
			for from := range 3 {
				for range 200 {
					if from != w.Rank() {
						if _, err := w.Recv(mpi.Of(make([]byte, 8000)), from, 0); err != nil {
							return err
						}
					}
				}
			}
			if err := w.Barrier(); err != nil {
				return err
			}
			limit := 64 * 8 << 10
			if o.RDMA.Flow == mpi.FlowCredit { // with headers, and receives of packets that return credits
				limit = 68 * 8256
			}
			require.EqualValues(t, 2, w.Stats().Connections)
			require.LessOrEqual(t, int(w.Stats().PacketMemory), 2*limit)
			return nil
		})
	})
}
