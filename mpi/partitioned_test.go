package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/mpi"
)

// partitionedNets are the transports of the tests of partitioned messages. Of hybrid, ranks 0 and 1
// use a connection.
var partitionedNets = map[string]mpi.Options{
	"rdma": {Net: mpi.RDMA}, "fast": {Net: mpi.RDMA, RDMA: mpi.RDMAOptions{Fast: true}}, "ud": {Net: mpi.UD},
	"hybrid": {Net: mpi.Hybrid, RCLimit: 2}, "tcp": {Net: mpi.TCP},
	"rdma, credit": {Net: mpi.RDMA, RDMA: mpi.RDMAOptions{Flow: mpi.FlowCredit}},
	"rdma, stream": {Net: mpi.RDMA, RDMA: mpi.RDMAOptions{Flow: mpi.FlowRDMA}},
	"rdma, NIC":    {Net: mpi.RDMA, RDMA: mpi.RDMAOptions{Flow: mpi.FlowNIC}},
}

// TestPartitioned sends a message in several rounds, with different numbers of partitions at both
// sides, to the next rank.
func TestPartitioned(t *testing.T) {
	const n = 3
	for name, o := range partitionedNets {
		for _, c := range []struct{ sends, receives, elements int }{
			{1, 1, 1}, {4, 4, 4}, {8, 2, 8}, {2, 8, 16}, {6, 4, 12}, {3, 5, 15 * 1000}, {2, 3, 60_000}, {4, 2, 0},
		} {
			t.Run(fmt.Sprintf("%s,%d to %d partitions of %d", name, c.sends, c.receives, c.elements), func(t *testing.T) {
				job(t, n, o, func(w mpi.World) error {
					next, before := (w.Rank()+1)%n, (w.Rank()+n-1)%n
					out, in := make([]int64, c.elements), make([]int64, c.elements)
					recv, err := w.PrecvInit(mpi.Of(in), c.receives, before, 1)
					require.NoError(t, err)
					send, err := w.PsendInit(mpi.Of(out), c.sends, next, 1)
					require.NoError(t, err)
					for round := range 4 {
						for i := range out {
							out[i] = int64(w.Rank())<<32 + int64(round<<24+i)
						}
						require.NoError(t, mpi.StartAll(recv, send))
						require.NoError(t, send.PreadyRange(c.sends/2, c.sends))
						for i := c.sends/2 - 1; i >= 0; i-- {
							require.NoError(t, send.PreadyList(i))
						}
						each := c.elements / c.receives
						for p := range c.receives {
							for ok := false; !ok; {
								ok, err = recv.Parrived(p)
								require.NoError(t, err)
							}
							for i := p * each; i < (p+1)*each; i++ {
								require.EqualValues(t, int64(before)<<32+int64(round<<24+i), in[i])
							}
						}
						s, err := recv.Wait()
						require.NoError(t, err)
						require.Equal(t, mpi.Status{Source: before, Tag: 1, Bytes: 8 * c.elements}, s)
						_, err = send.Wait()
						require.NoError(t, err)
					}
					require.NoError(t, send.Free())
					return recv.Free()
				})
			})
		}
	}
}

// TestPartitionedShort checks that a sender of short messages does not wait for the receiver to start
// a round, and that the receiver gets the rounds in order, each with the data of its time.
func TestPartitionedShort(t *testing.T) {
	const rounds = 10
	for name, o := range partitionedNets {
		t.Run(name, func(t *testing.T) {
			job(t, 2, o, func(w mpi.World) error {
				x := make([]int64, 8)
				init := w.PsendInit
				if w.Rank() == 1 {
					init = w.PrecvInit
				}
				r, err := init(mpi.Of(x), 4, 1-w.Rank(), 1)
				require.NoError(t, err)
				for round := range rounds {
					if w.Rank() == 1 && round == 1 { // the sender is done with all rounds
						_, err = w.Recv(mpi.Of([]int64{0}), 0, 2)
						require.NoError(t, err)
					}
					require.NoError(t, r.Start())
					if w.Rank() == 0 {
						for i := range x {
							x[i] = int64(100*round + i)
						}
						require.NoError(t, r.PreadyRange(0, 4))
					}
					_, err = r.Wait()
					require.NoError(t, err)
					require.EqualValues(t, 100*round+7, x[7])
				}
				if w.Rank() == 0 {
					require.NoError(t, w.Send(mpi.Of([]int64{0}), 1, 2))
				}
				return r.Free()
			})
		})
	}
}

// TestPartitionedAllocations checks that no partition over RDMA allocates. The ranks poll: a wait
// that blocks allocates.
func TestPartitionedAllocations(t *testing.T) {
	if racesync.Enabled {
		t.Skip("the race detector allocates")
	}
	const partitions, rounds = 64, 100
	for _, elements := range []int{partitions, partitions << 10} {
		job(t, 2, mpi.Options{Net: mpi.RDMA}, func(w mpi.World) error {
			out, in := make([]int64, elements), make([]int64, elements)
			recv, err := w.PrecvInit(mpi.Of(in), partitions, 1-w.Rank(), 1)
			require.NoError(t, err)
			send, err := w.PsendInit(mpi.Of(out), partitions, 1-w.Rank(), 1)
			require.NoError(t, err)
			round := func() {
				require.NoError(t, recv.Start())
				require.NoError(t, send.Start())
				for i := range partitions {
					require.NoError(t, send.Pready(i))
				}
				for _, r := range []*mpi.Request{recv, send} {
					for done := false; !done; runtime.Gosched() {
						_, done, err = r.Test()
						require.NoError(t, err)
					}
				}
			}
			for range 20 {
				round()
			}
			if w.Rank() == 1 {
				for range rounds + 1 {
					round()
				}
				return nil
			}
			require.Less(t, testing.AllocsPerRun(rounds, round), partitions/4.0, "of both ranks and the timers of their connections")
			return nil
		})
	}
}

// TestPartitionedGoroutines makes the partitions ready in several goroutines, while another one waits.
func TestPartitionedGoroutines(t *testing.T) {
	const workers, each = 8, 4
	for name, o := range partitionedNets {
		t.Run(name, func(t *testing.T) {
			job(t, 2, o, func(w mpi.World) error {
				x := make([]int64, 1000*workers*each)
				if w.Rank() == 1 {
					r, err := w.PrecvInit(mpi.Of(x), workers, 0, 1)
					require.NoError(t, err)
					for round := range 5 {
						require.NoError(t, r.Start())
						var all sync.WaitGroup
						for p := range workers {
							all.Go(func() {
								for ok := false; !ok; {
									var err error
									if ok, err = r.Parrived(p); err != nil {
										t.Error(err)
										return
									}
								}
								for i := p * 1000 * each; i < (p+1)*1000*each; i++ {
									if x[i] != int64(round*len(x)+i) {
										t.Errorf("round %d: element %d is %d", round, i, x[i])
										return
									}
								}
							})
						}
						all.Wait()
						_, err := r.Wait()
						require.NoError(t, err)
					}
					return r.Free()
				}
				s, err := w.PsendInit(mpi.Of(x), workers*each, 1, 1)
				require.NoError(t, err)
				for round := range 5 {
					require.NoError(t, s.Start())
					for p := range workers {
						go func() {
							for i := p * each; i < (p+1)*each; i++ {
								for j := i * 1000; j < (i+1)*1000; j++ {
									x[j] = int64(round*len(x) + j)
								}
								if err := s.Pready(i); err != nil {
									t.Error(err)
								}
							}
						}()
					}
					_, err := s.Wait()
					require.NoError(t, err)
				}
				return s.Free()
			})
		})
	}
}

// TestPartitionedMatching checks that messages with equal tags match in the order of their
// initialization, that no other message matches them, and that buffers may have gaps.
func TestPartitionedMatching(t *testing.T) {
	for name, o := range partitionedNets {
		t.Run(name, func(t *testing.T) {
			job(t, 2, o, func(w mpi.World) error {
				peer := 1 - w.Rank()
				var rs, sends []*mpi.Request
				outs, ins := make([][]int32, 3), make([][]int32, 3)
				for i := range 3 {
					outs[i], ins[i] = make([]int32, 12), make([]int32, 12)
					for j := range outs[i] {
						outs[i][j] = int32(100*w.Rank() + 20*i + j)
					}
					recv, err := w.PrecvInit(mpi.Strided(ins[i], 4, 1, 3), 4, peer, 1)
					require.NoError(t, err)
					send, err := w.PsendInit(mpi.Strided(outs[i], 4, 1, 3), 2, peer, 1)
					require.NoError(t, err)
					rs, sends = append(rs, recv), append(sends, send)
				}
				require.NoError(t, w.Send(mpi.Of([]int32{7}), peer, 1))
				require.NoError(t, mpi.StartAll(rs[2], rs[0], rs[1], sends[1], sends[2], sends[0]))
				for i := range 3 {
					require.NoError(t, sends[i].PreadyList(1))
					for ok := false; !ok; {
						var err error
						ok, err = rs[i].Parrived(2)
						require.NoError(t, err)
					}
					require.EqualValues(t, 100*peer+20*i+6, ins[i][6])
					early, err := rs[i].Parrived(1)
					require.NoError(t, err)
					require.False(t, early)
					require.NoError(t, w.Barrier())
					require.NoError(t, sends[i].PreadyList(0))
				}
				_, err := mpi.WaitAll(append(rs, sends...)...)
				require.NoError(t, err)
				for i := range 3 {
					for j := range 12 {
						want := int32(0)
						if j%3 == 0 {
							want = int32(100*peer + 20*i + j)
						}
						require.Equal(t, want, ins[i][j])
					}
				}
				x := []int32{0}
				_, err = w.Recv(mpi.Of(x), peer, 1)
				require.NoError(t, err)
				require.EqualValues(t, 7, x[0])
				return nil
			})
		})
	}
}

// TestPartitionedMismatch checks that both sides fail if their sizes or their types differ.
func TestPartitionedMismatch(t *testing.T) {
	for name, o := range partitionedNets {
		for _, c := range []struct {
			name string
			recv mpi.Buffer
			want error
			text string
		}{
			{"longer", mpi.Of(make([]int64, 9)), mpi.ErrPartitionSize, "partitioned messages differ in size: 64 bytes sent, 72 received"},
			{"shorter", mpi.Of(make([]int64, 6)), mpi.ErrPartitionSize, "partitioned messages differ in size: 64 bytes sent, 48 received"},
			{"another type", mpi.Of(make([]float64, 8)), mpi.ErrType, "int64 elements sent, float64 elements received"},
		} {
			t.Run(name+","+c.name, func(t *testing.T) {
				job(t, 2, o, func(w mpi.World) (err error) {
					var r *mpi.Request
					if w.Rank() == 0 {
						r, err = w.PsendInit(mpi.Of(make([]int64, 8)), 4, 1, 1)
					} else {
						r, err = w.PrecvInit(c.recv, 1, 0, 1)
					}
					require.NoError(t, err)
					if err = r.Start(); err == nil { // the other side may be known already
						_, err = r.Wait()
					}
					require.ErrorIs(t, err, c.want)
					require.ErrorContains(t, err, c.text)
					require.ErrorIs(t, r.Start(), c.want, "it cannot be started again")
					require.NoError(t, r.Free())
					return nil
				})
			})
		}
	}
}

// TestPartitionedArguments checks the errors of invalid arguments and of calls out of order.
func TestPartitionedArguments(t *testing.T) {
	w := aloneWorld(t)
	x := make([]int64, 4)
	for name, init := range map[string]func(mpi.Buffer, int, int, int) (*mpi.Request, error){"send": w.PsendInit, "receive": w.PrecvInit} {
		for _, c := range []struct {
			b                     mpi.Buffer
			partitions, rank, tag int
			want                  error
		}{
			{mpi.Of(x), 0, 0, 1, mpi.ErrPartition}, {mpi.Of(x), -1, 0, 1, mpi.ErrPartition}, {mpi.Of(x), 1 << 25, 0, 1, mpi.ErrPartition},
			{mpi.Of(x), 3, 0, 1, mpi.ErrCount}, {mpi.Of(x), 3, mpi.ProcNull, 1, mpi.ErrCount},
			{mpi.Of(x), 1, 1, 1, mpi.ErrRank}, {mpi.Of(x), 1, mpi.AnySource, 1, mpi.ErrRank},
			{mpi.Of(x), 1, 0, -1, mpi.ErrTag}, {mpi.Of(x), 1, 0, mpi.AnyTag, mpi.ErrTag},
			{mpi.InPlace, 1, 0, 1, mpi.ErrBuffer},
		} {
			_, err := init(c.b, c.partitions, c.rank, c.tag)
			require.ErrorIs(t, err, c.want, "%s %+v", name, c)
		}
		nobody, err := init(mpi.Of(x), 2, mpi.ProcNull, 1)
		require.NoError(t, err)
		require.NoError(t, nobody.Start())
		if name == "send" {
			require.NoError(t, nobody.PreadyList(1, 0))
			require.ErrorIs(t, nobody.Pready(2), mpi.ErrPartition)
			_, err = nobody.Parrived(0)
			require.ErrorIs(t, err, mpi.ErrRequest)
		} else {
			ok, err := nobody.Parrived(1)
			require.NoError(t, err)
			require.True(t, ok)
			_, err = nobody.Parrived(2)
			require.ErrorIs(t, err, mpi.ErrPartition)
			require.ErrorIs(t, nobody.Pready(0), mpi.ErrRequest)
		}
		s, err := nobody.Wait()
		require.NoError(t, err)
		require.Equal(t, mpi.ProcNull, s.Source)
		require.NoError(t, nobody.Free())
	}

	_, err := (*mpi.Comm)(nil).PsendInit(mpi.Of(x), 1, 0, 0)
	require.ErrorIs(t, err, mpi.ErrComm)
	_, err = (*mpi.Comm)(nil).PrecvInit(mpi.Of(x), 1, 0, 0)
	require.ErrorIs(t, err, mpi.ErrComm)
	var null *mpi.Request
	require.ErrorIs(t, null.Pready(0), mpi.ErrRequest)
	_, err = null.Parrived(0)
	require.ErrorIs(t, err, mpi.ErrRequest)
	usual, err := w.SendInit(mpi.Of(x), 0, 1)
	require.NoError(t, err)
	require.ErrorIs(t, usual.Pready(0), mpi.ErrRequest)
	_, err = usual.Parrived(0)
	require.ErrorIs(t, err, mpi.ErrRequest)

	in := make([]int64, 4)
	send, err := w.PsendInit(mpi.Of(x), 4, 0, 1)
	require.NoError(t, err)
	recv, err := w.PrecvInit(mpi.Of(in), 2, 0, 1)
	require.NoError(t, err)
	require.EqualError(t, send.Pready(0), "mpi: rank 0 of world: partition-ready to 0, tag 1: invalid request: not active")
	ok, err := recv.Parrived(0)
	require.NoError(t, err)
	require.True(t, ok, "as Test of a request that is not active")
	require.NoError(t, mpi.StartAll(send, recv))
	require.ErrorIs(t, send.Start(), mpi.ErrRequest)
	require.ErrorIs(t, send.Free(), mpi.ErrRequest)
	require.False(t, recv.Cancel())
	require.EqualError(t, send.PreadyRange(3, 5), "mpi: rank 0 of world: partition-ready to 0, tag 1: invalid partition: [3, 5), want in [0, 4)")
	require.ErrorIs(t, send.PreadyRange(2, 1), mpi.ErrPartition)
	require.ErrorIs(t, send.Pready(-1), mpi.ErrPartition)
	require.NoError(t, send.PreadyRange(1, 1))
	require.NoError(t, send.Pready(1))
	require.ErrorIs(t, send.PreadyRange(0, 4), mpi.ErrPartition, "partition 1 is ready")
	_, err = recv.Parrived(2)
	require.ErrorIs(t, err, mpi.ErrPartition)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = recv.WaitContext(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, send.PreadyList(0, 3, 2))
	_, err = mpi.WaitAll(recv, send)
	require.NoError(t, err)
	require.NoError(t, w.Finalize())
	require.ErrorIs(t, send.Start(), mpi.ErrFinalized)
	_, err = w.PsendInit(mpi.Of(x), 1, 0, 1)
	require.ErrorIs(t, err, mpi.ErrFinalized)
}

// TestPartitionedLostRank checks that both sides fail if the other one ends between two calls of
// Pready, or before the first.
func TestPartitionedLostRank(t *testing.T) {
	for name, o := range partitionedNets {
		o.RDMA.Retries, o.RDMA.Connect, o.UD.GiveUp, o.TCP.GiveUp = 3, hasty, giveUp, giveUp
		for _, victim := range []int{0, 1} {
			for _, ready := range []int{0, 2} {
				t.Run(fmt.Sprintf("%s,rank %d,%d ready", name, victim, ready), func(t *testing.T) {
					t.Parallel()           // some wait for a timeout
					var met sync.WaitGroup // both ranks
					met.Add(2)
					eachRank(2, o, func(rank int, o mpi.Options) {
						w, err := mpi.Init(open, o)
						if err != nil {
							met.Done()
							t.Error(err)
							return
						}
						x := make([]byte, 4*5000)
						var r *mpi.Request
						if rank == 0 {
							r, err = w.PsendInit(mpi.Bytes(x), 4, 1, 1)
						} else {
							r, err = w.PrecvInit(mpi.Bytes(x), 4, 0, 1)
						}
						if err == nil {
							err = r.Start()
						}
						for p := 0; p < ready && err == nil; p++ {
							if rank == 0 {
								err = r.Pready(p)
							}
							for ok := rank == 0; !ok && err == nil; {
								ok, err = r.Parrived(p)
							}
						}
						if err != nil {
							t.Error(err)
						}
						met.Done()
						met.Wait()
						if rank == victim {
							w.Vanish()
							return
						}
						if rank == 0 {
							for err == nil && ready < 4 {
								err = r.Pready(ready)
								ready++
							}
						}
						if err == nil {
							_, err = r.Wait()
						}
						if rank == 0 && ready == 4 && err == nil { // the writes were posted before the loss was known
							err = waitLost(r)
						}
						if want := mpi.ErrLost; !errors.Is(err, want) {
							t.Errorf("rank %d: %v, want %v", rank, err, want)
						}
						if err := r.Start(); !errors.Is(err, mpi.ErrLost) && !errors.Is(err, mpi.ErrRequest) {
							t.Errorf("rank %d starts again: %v", rank, err)
						}
						w.Vanish()
					})
				})
			}
		}
	}
}

// waitLost sends rounds until one fails. Those before are messages that left before the loss was known.
func waitLost(r *mpi.Request) error {
	for {
		if err := r.Start(); err != nil {
			return err
		}
		if err := r.PreadyRange(0, 4); err != nil { // else the wait is one for this program
			return err
		}
		if _, err := r.Wait(); err != nil {
			return err
		}
	}
}

// TestPartitionedReport checks the words of a report about waits for partitioned messages.
func TestPartitionedReport(t *testing.T) {
	job(t, 2, mpi.Options{}, func(w mpi.World) error {
		x := make([]int64, 8)
		if w.Rank() == 1 {
			s, err := w.PsendInit(mpi.Of(x), 8, 0, 3)
			require.NoError(t, err)
			require.NoError(t, s.Start())
			require.NoError(t, s.PreadyRange(0, 5))
			require.NoError(t, w.Barrier())
			_, err = w.Recv(mpi.Of(x[:1]), 0, 4)
			require.NoError(t, err)
			require.NoError(t, s.PreadyRange(5, 8))
			_, err = s.Wait()
			return err
		}
		r, err := w.PrecvInit(mpi.Of(x), 4, 1, 3)
		require.NoError(t, err)
		require.NoError(t, r.Start())
		for ok := false; !ok; {
			ok, err = r.Parrived(1)
			require.NoError(t, err)
		}
		require.NoError(t, w.Barrier())
		var waits sync.WaitGroup
		waits.Go(func() {
			if _, err := r.Wait(); err != nil {
				t.Error(err)
			}
		})
		for text := ""; !strings.Contains(text, "Precv(4 partitions, source 1, tag 3)"); {
			text, err = w.Report(context.Background())
			require.NoError(t, err)
		}
		require.NoError(t, w.Send(mpi.Of(x[:1]), 1, 4))
		waits.Wait()
		return nil
	})
}
