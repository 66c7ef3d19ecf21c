package imb

import (
	"time"
	"unsafe"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/datatype"
)

// timeEach takes the time of each call, and has a barrier behind it that does not
// count.
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

// timeBarriers is one behind the other.
func timeBarriers(k *kernel, n int) (time.Duration, error) {
	start := time.Now()
	for range n {
		if err := k.c.Barrier(); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// reduceLocal is what a reduction does with what has come.
func (k *kernel) reduceLocal() error {
	return mpi.Sum.Apply(datatype.Float32, asBytes(k.recvMem), asBytes(k.sendMem))
}

func asBytes(s []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*float)
}
