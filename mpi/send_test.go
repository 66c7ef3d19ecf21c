package mpi_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

func TestPingPong(t *testing.T) { pingPong(t, mpi.Options{}) }

func TestPingPongChecked(t *testing.T) { pingPong(t, checked) }

func pingPong(t *testing.T, o mpi.Options) {
	job(t, 2, o, func(w mpi.World) error {
		for _, n := range []int{0, 1, 100, 5000, 100_000, 3_000_000} {
			b, sent := make([]byte, n), make([]byte, n)
			for i := range sent {
				sent[i] = byte(i * 7)
			}
			for range 3 {
				if w.Rank() == 0 {
					copy(b, sent)
					require.NoError(t, w.Send(mpi.Of(b), 1, 5))
					clear(b)
					s, err := w.Recv(mpi.Of(b), 1, 6)
					require.NoError(t, err)
					require.Equal(t, mpi.Status{Source: 1, Tag: 6, Bytes: n}, s)
					require.True(t, bytes.Equal(sent, b), "%d bytes", n)
				} else {
					_, err := w.Recv(mpi.Of(b), mpi.AnySource, mpi.AnyTag)
					require.NoError(t, err)
					require.NoError(t, w.Send(mpi.Of(b), 0, 6))
				}
			}
		}
		return nil
	})
}

func TestAllreduce(t *testing.T) {
	for _, n := range []int{1, 2, 5, 8} {
		job(t, n, mpi.Options{}, func(w mpi.World) error {
			x := []float64{float64(w.Rank()), 1}
			sum := make([]float64, 2)
			require.NoError(t, w.Allreduce(mpi.Of(x), mpi.Of(sum), mpi.Sum))
			require.Equal(t, []float64{float64(n * (n - 1) / 2), float64(n)}, sum)
			return nil
		})
	}
}

// TestBurst sends more messages to one rank than it has receive buffers, while it makes no call. It
// must allocate buffers and get every message in order. A burst is repeated if it was received with the
// first buffers.
func TestBurst(t *testing.T) {
	const n = 5
	t.Setenv("SOFTRNIC_MPI_FLOW", "shared") // with its receives
	for _, fast := range []bool{false, true} {
		job(t, n, mpi.Options{RDMA: mpi.RDMAOptions{Receives: 16, Fast: fast}}, func(w mpi.World) error {
			for grown := []byte{0}; grown[0] == 0; {
				if w.Rank() > 0 {
					sendBurst(t, w)
				} else {
					receiveBurst(t, w)
					if fast || w.Stats().ReceiveBuffers > 16 {
						grown[0] = 1
					}
				}
				require.NoError(t, w.Bcast(mpi.Of(grown), 0))
			}
			if w.Rank() == 0 && !fast {
				require.NotZero(t, w.Stats().CreditPackets)
			}
			return nil
		})
	}
}

// burstMessages is the number of messages of a rank in a burst.
const burstMessages = 300

// sendBurst sends a burst to rank 0. When all ranks have begun, a message in a chain reaches it.
func sendBurst(t *testing.T, w mpi.World) {
	rs := make([]*mpi.Request, burstMessages)
	for i := range rs {
		var err error
		x := make([]int32, 1+i%400) // some together, some alone
		x[0] = int32(i)
		rs[i], err = w.Isend(mpi.Of(x), 0, 7)
		require.NoError(t, err)
	}
	if w.Rank() > 1 {
		_, err := w.Recv(mpi.Of([]byte{0}), w.Rank()-1, 8)
		require.NoError(t, err)
	}
	require.NoError(t, w.Send(mpi.Of([]byte{1}), (w.Rank()+1)%w.Size(), 8))
	_, err := mpi.WaitAll(rs...)
	require.NoError(t, err)
}

// receiveBurst receives the bursts of all ranks.
func receiveBurst(t *testing.T, w mpi.World) {
	_, err := w.Recv(mpi.Of([]byte{0}), w.Size()-1, 8)
	require.NoError(t, err)
	next := make([]int32, w.Size())
	x := make([]int32, 400)
	for range (w.Size() - 1) * burstMessages {
		s, err := w.Recv(mpi.Of(x), mpi.AnySource, 7)
		require.NoError(t, err)
		require.Equal(t, next[s.Source], x[0])
		require.Equal(t, 4*(1+int(x[0])%400), s.Bytes)
		next[s.Source]++
	}
}

// TestWaitSome checks that WaitSome and TestSome return each completed request once.
func TestWaitSome(t *testing.T) {
	for name, some := range map[string]func(...*mpi.Request) ([]int, []mpi.Status, error){"wait": mpi.WaitSome, "test": mpi.TestSome} {
		job(t, 2, mpi.Options{}, func(w mpi.World) error {
			const n = 6
			if w.Rank() == 1 {
				for _, tag := range []int{3, 0, 5, 1, 2, 4} {
					require.NoError(t, w.Send(mpi.Of([]int64{int64(tag)}), 0, tag))
				}
				return nil
			}
			if done, list, err := some(nil, nil); done != nil || list != nil || err != nil {
				return fmt.Errorf("%s of none: %v, %v, %w", name, done, list, err)
			}
			in := make([]int64, n)
			var rs []*mpi.Request
			for tag := range n {
				r, err := w.Irecv(mpi.Of(in[tag:tag+1]), 1, tag)
				require.NoError(t, err)
				rs = append(rs, r)
			}
			var all []int
			for len(all) < n {
				done, list, err := some(rs...)
				if err != nil || len(done) != len(list) || name == "wait" && len(done) == 0 {
					return fmt.Errorf("%s: %v, %v, %w", name, done, list, err)
				}
				for i, d := range done {
					if list[i].Tag != d {
						return fmt.Errorf("%s: tag %d of request %d", name, list[i].Tag, d)
					}
					rs[d] = nil
				}
				all = append(all, done...)
			}
			if slices.Sort(all); !slices.Equal(all, []int{0, 1, 2, 3, 4, 5}) || !slices.Equal(in, []int64{0, 1, 2, 3, 4, 5}) {
				return fmt.Errorf("%s: %v with %v", name, all, in)
			}
			return nil
		})
	}
}
