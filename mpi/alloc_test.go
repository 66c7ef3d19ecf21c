package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/mpi"
)

// exchangeForms are ways to send a message and to receive it, with the number of allocations if the
// message is one of a rank to itself, whose payload is copied once. Blocking calls recycle their
// requests, and a nonblocking call allocates its Request.
var exchangeForms = []struct {
	name   string
	allocs float64
	do     func(c *mpi.Comm, send, recv mpi.Buffer, peer int) error
}{
	{"Sendrecv", 1, func(c *mpi.Comm, send, recv mpi.Buffer, peer int) error {
		_, err := c.Sendrecv(send, peer, 1, recv, peer, 1)
		return err
	}},
	{"Recv", 2, func(c *mpi.Comm, send, recv mpi.Buffer, peer int) error {
		s, err := c.Isend(send, peer, 1)
		if err != nil {
			return err
		}
		if _, err := c.Recv(recv, mpi.AnySource, mpi.AnyTag); err != nil {
			return err
		}
		_, err = s.Wait()
		return err
	}},
	{"Wait", 3, waitingBy(func(r, s *mpi.Request) error {
		if _, err := r.Wait(); err != nil {
			return err
		}
		_, err := s.Wait()
		return err
	})},
	{"Test", 3, waitingBy(func(r, s *mpi.Request) error {
		for _, x := range []*mpi.Request{r, s} {
			for done := false; !done; {
				var err error
				if _, done, err = x.Test(); err != nil {
					return err
				}
			}
		}
		return nil
	})},
	{"WaitAll", 4, waitingBy(func(r, s *mpi.Request) error {
		_, err := mpi.WaitAll(r, s)
		return err
	})},
	{"WaitAny", 6, waitingBy(func(r, s *mpi.Request) error {
		if _, _, err := mpi.WaitAny(r, s); err != nil {
			return err
		}
		_, err := mpi.WaitAll(r, s)
		return err
	})},
}

// waitingBy sends a message by Isend and receives it by Irecv, and calls wait for the receive and
// the send.
func waitingBy(wait func(r, s *mpi.Request) error) func(c *mpi.Comm, send, recv mpi.Buffer, peer int) error {
	return func(c *mpi.Comm, send, recv mpi.Buffer, peer int) error {
		r, err := c.Irecv(recv, peer, 1)
		if err != nil {
			return err
		}
		s, err := c.Isend(send, peer, 1)
		if err != nil {
			return err
		}
		return wait(r, s)
	}
}

// TestMessageAllocations holds the allocations of messages of a rank to itself.
func TestMessageAllocations(t *testing.T) {
	if racesync.Enabled {
		t.Skip("the race detector allocates")
	}
	job(t, 1, mpi.Options{}, func(w mpi.World) error {
		send, recv := mpi.Of([]int64{1}), mpi.Of([]int64{0})
		for _, c := range exchangeForms {
			n := testing.AllocsPerRun(200, func() { require.NoError(t, c.do(w.Comm, send, recv, 0), c.name) })
			require.LessOrEqual(t, n, c.allocs, c.name)
		}
		return nil
	})
}

// BenchmarkMessages exchangeForms messages between two ranks.
func BenchmarkMessages(b *testing.B) {
	for _, c := range exchangeForms {
		b.Run(c.name, func(b *testing.B) {
			bench(b, 2, func(w mpi.World) func() error {
				send, recv := mpi.Of([]int64{1}), mpi.Of([]int64{0})
				return func() error { return c.do(w.Comm, send, recv, 1-w.Rank()) }
			})
		})
	}
}
