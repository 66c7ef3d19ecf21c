package imb

import (
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// timeEach measures each call separately. The barrier behind each call is not measured.
func timeEach(call func(*kernel) error) func(*kernel, int) (time.Duration, error) {
	return func(k *kernel, n int) (total time.Duration, err error) {
		k.root = 0
		for range n {
			start := time.Now()
			if err := call(k); err != nil {
				return 0, err
			}
			total += time.Since(start)
			if k.o.RootShift {
				k.root = (k.root + 1) % k.ranks
			}
			if !k.o.NoSync {
				if err := k.c.Barrier(); err != nil {
					return 0, err
				}
			}
		}
		return total, nil
	}
}

// timeBarriers measures consecutive barriers.
func timeBarriers(k *kernel, n int) (time.Duration, error) {
	start := time.Now()
	for range n {
		if err := k.c.Barrier(); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// reduceLocal applies the reduction operation of a collective to local data.
func (k *kernel) reduceLocal() error {
	return mpi.ReduceLocal(mpi.Of(k.sendMem), mpi.Of(k.recvMem), mpi.Sum)
}
