package mpi_test

import (
	"math"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestBadMessages checks that invalid arguments are errors of the call and truncation an error
// of the receive, on every net and for all lengths, and that later messages are correct.
func TestBadMessages(t *testing.T) {
	for name, o := range nets {
		t.Run(name, func(t *testing.T) {
			job(t, 2, o, func(w mpi.World) error {
				other := 1 - w.Rank()
				free, err := w.Dup()
				require.NoError(t, err)
				require.NoError(t, free.Free())
				x := make([]byte, 100_000)
				for i := range x {
					x[i] = byte(i * 7)
				}
				recv := func(c *mpi.Comm, source, tag int) error {
					_, err := c.Recv(mpi.Of(x), source, tag)
					return err
				}
				probe := func(c *mpi.Comm, source, tag int) error {
					_, err := c.Probe(source, tag)
					return err
				}
				for i, c := range []struct{ err, want error }{
					{w.Send(mpi.Of(x), 2, 0), mpi.ErrRank},
					{w.Send(mpi.Of(x), -1, 0), mpi.ErrRank},
					{w.Send(mpi.Of(x), mpi.AnySource, 0), mpi.ErrRank},
					{w.Ssend(mpi.Of(x), math.MaxInt, 0), mpi.ErrRank},
					{w.Bsend(mpi.Of(x), other, mpi.AnyTag), mpi.ErrTag},
					{w.Send(mpi.Of(x), other, -mpi.MaxTag), mpi.ErrTag},
					{recv(w.Comm, 2, 0), mpi.ErrRank},
					{recv(w.Comm, other, -7), mpi.ErrTag},
					{probe(w.Comm, 5, 0), mpi.ErrRank},
					{recv(free, other, 0), mpi.ErrFreed},
					{probe(free, other, 0), mpi.ErrFreed},
					{free.Send(mpi.Of(x), other, 0), mpi.ErrFreed},
					{made(free.Ibcast(mpi.Of(x), 0)), mpi.ErrFreed},
					{made(free.Create(w.Group())), mpi.ErrFreed},
				} {
					require.ErrorIs(t, c.err, c.want, i)
					var e *mpi.Error
					require.ErrorAs(t, c.err, &e, i)
				}
				for tag, long := range []int{2, 300, 7000, 20_000, 100_000} {
					r, err := w.Isend(mpi.Of(x[:long]), other, tag)
					require.NoError(t, err)
					y := make([]byte, long)
					s, err := w.Recv(mpi.Of(y[:long/2]), other, tag)
					require.ErrorIs(t, err, mpi.ErrTruncated)
					require.ErrorContains(t, err, "bytes came from rank")
					require.Equal(t, long/2, s.Bytes)
					require.Equal(t, x[:long/2], y[:long/2])
					require.Equal(t, make([]byte, long-long/2), y[long/2:], "nothing behind the buffer is touched")
					_, err = r.Wait()
					require.NoError(t, err)
				}
				return w.Barrier()
			})
		})
	}
}

// TestNoAdapter checks that Init returns the reason why a device cannot be opened.
func TestNoAdapter(t *testing.T) {
	err := pmi.RunLocal(2, grace, func(m pmi.Manager) error {
		_, err := mpi.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{Impair: "bad luck"}) }, mpi.Options{Manager: m})
		return err
	})
	require.ErrorContains(t, err, "mpi: rank 0 of world: init job of 2 ranks: ")
	require.ErrorIs(t, err, verbs.ErrInvalid)
}

// TestForeignConnections checks that foreign connections are rejected without effect on the job.
func TestForeignConnections(t *testing.T) {
	job(t, 3, mpi.Options{Net: mpi.TCP}, func(w mpi.World) error {
		at, err := w.Address("tcp", (w.Rank()+1)%3)
		require.NoError(t, err)
		for _, says := range []string{"", "GET / HTTP/1.1\r\n\r\n", "MPTT", strings.Repeat("\x00", 20), strings.Repeat("MPTT", 1000)} {
			require.NoError(t, dialAndSend(at, says))
		}
		for range 10 {
			require.NoError(t, w.Allreduce(mpi.Of([]int64{1}), mpi.Of([]int64{0}), mpi.Sum))
		}
		return nil
	})
}

// dialAndSend connects to an address and sends a text.
func dialAndSend(at, says string) error {
	c, err := net.Dial("tcp", at)
	if err != nil {
		return err
	}
	_, _ = c.Write([]byte(says)) // the rank may have closed the connection
	return c.Close()
}
