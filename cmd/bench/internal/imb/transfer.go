package imb

import (
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// A kernel is a rank's state of a benchmark for one size: buffers and arguments of calls.
type kernel struct {
	c              *mpi.Comm
	b              Benchmark
	o              Options
	rank, ranks    int
	size           int
	root           int
	send, recv     mpi.Buffer
	counts, displs []int // counts and displacements of equal parts
	recvCounts     []int // receive counts of Reduce_scatter
	requests       []*mpi.Request
	sendMem        []float32
	recvMem        []float32
}

// newKernel allocates the buffers: of bytes, or of numbers for reductions.
func newKernel(c *mpi.Comm, b Benchmark, o Options, size int) *kernel {
	k := &kernel{c: c, b: b, o: o, rank: c.Rank(), ranks: c.Size(), size: size}
	out, in := b.sendSize(size, k.ranks), b.recvSize(size, k.ranks)
	n := size
	if b.reduces {
		n = size / float
		for i := range k.ranks {
			k.recvCounts = append(k.recvCounts, (i+1)*n/k.ranks-i*n/k.ranks)
		}
		in /= float
		if b.Name == "Reduce_scatter" {
			in = k.recvCounts[k.rank]
		}
		k.sendMem, k.recvMem = make([]float32, out/float), make([]float32, in)
		k.send, k.recv = mpi.Of(k.sendMem), mpi.Of(k.recvMem)
	} else {
		k.send, k.recv = mpi.Of(make([]byte, out)), mpi.Of(make([]byte, in))
	}
	for i := range k.ranks {
		k.counts, k.displs = append(k.counts, n), append(k.displs, i*n)
	}
	return k
}

const tag = 1

// sourceRank returns rank, or AnySource if anyone is true.
func sourceRank(rank int, anyone bool) int {
	if anyone {
		return mpi.AnySource
	}
	return rank
}

// pingPong returns a benchmark of one message in each direction, one after the other.
func pingPong(anyone bool) func(*kernel, int) (time.Duration, error) {
	return func(k *kernel, n int) (time.Duration, error) {
		other := 1 - k.rank
		from := sourceRank(other, anyone)
		start := time.Now()
		for range n {
			if k.rank == 0 {
				if err := k.c.Send(k.send, other, tag); err != nil {
					return 0, err
				}
			}
			if _, err := k.c.Recv(k.recv, from, mpi.AnyTag); err != nil {
				return 0, err
			}
			if k.rank == 1 {
				if err := k.c.Send(k.send, other, tag); err != nil {
					return 0, err
				}
			}
		}
		return time.Since(start), nil
	}
}

// pingPing returns a benchmark of one message in each direction at the same time.
func pingPing(anyone bool) func(*kernel, int) (time.Duration, error) {
	return func(k *kernel, n int) (time.Duration, error) {
		other := 1 - k.rank
		from := sourceRank(other, anyone)
		start := time.Now()
		for range n {
			r, err := k.c.Isend(k.send, other, tag)
			if err != nil {
				return 0, err
			}
			if _, err := k.c.Recv(k.recv, from, mpi.AnyTag); err != nil {
				return 0, err
			}
			if _, err := r.Wait(); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	}
}

// timeSendrecv measures a chain in which all ranks send to the right and receive from the left.
func timeSendrecv(k *kernel, n int) (time.Duration, error) {
	left, right := k.neighbourRanks()
	start := time.Now()
	for range n {
		if _, err := k.c.Sendrecv(k.send, right, tag, k.recv, left, mpi.AnyTag); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// timeExchange measures a chain in which all ranks send to both sides.
func timeExchange(k *kernel, n int) (time.Duration, error) {
	left, right := k.neighbourRanks()
	toRight, toLeft := k.send.Slice(0, k.size), k.send.Slice(k.size, 2*k.size)
	start := time.Now()
	for range n {
		a, err := k.c.Isend(toRight, right, tag)
		if err != nil {
			return 0, err
		}
		b, err := k.c.Isend(toLeft, left, tag)
		if err != nil {
			return 0, err
		}
		for _, from := range [2]int{left, right} {
			if _, err := k.c.Recv(k.recv, from, mpi.AnyTag); err != nil {
				return 0, err
			}
		}
		if _, err := mpi.WaitAll(a, b); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

func (k *kernel) neighbourRanks() (left, right int) {
	return (k.rank + k.ranks - 1) % k.ranks, (k.rank + 1) % k.ranks
}

// timeWindows returns a benchmark of many messages from the lower half of the ranks to the
// upper half, or in both directions, followed by an acknowledgement.
func timeWindows(both bool) func(*kernel, int) (time.Duration, error) {
	return func(k *kernel, n int) (time.Duration, error) {
		peer, first := k.rank+k.ranks/2, true
		if k.rank >= k.ranks/2 {
			peer, first = k.rank-k.ranks/2, false
		}
		start := time.Now()
		for range n {
			if err := k.exchangeWindow(peer, both || !first, both || first); err != nil {
				return 0, err
			}
			if err := k.exchangeAck(peer, first); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	}
}

func (k *kernel) exchangeWindow(peer int, receives, sends bool) error {
	k.requests = k.requests[:0]
	for _, op := range []struct {
		enabled bool
		start   func() (*mpi.Request, error)
	}{
		{receives, func() (*mpi.Request, error) { return k.c.Irecv(k.recv, peer, tag) }},
		{sends, func() (*mpi.Request, error) { return k.c.Isend(k.send, peer, tag) }},
	} {
		for i := 0; op.enabled && i < k.o.Window; i++ {
			r, err := op.start()
			if err != nil {
				return err
			}
			k.requests = append(k.requests, r)
		}
	}
	_, err := mpi.WaitAll(k.requests...)
	return err
}

// exchangeAck sends an acknowledgement from the upper half to the lower half.
func (k *kernel) exchangeAck(peer int, first bool) error {
	ack := [1]byte{}
	if first {
		_, err := k.c.Recv(mpi.Of(ack[:]), peer, tag+1)
		return err
	}
	return k.c.Send(mpi.Of(ack[:]), peer, tag+1)
}
