package mpi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// bench runs f b.N times on n ranks. It measures time and memory of all ranks together.
func bench(b *testing.B, n int, prepare func(w mpi.World) func() error) {
	b.ReportAllocs()
	job(b, n, mpi.Options{}, func(w mpi.World) error {
		f := prepare(w)
		for range 10 { // connections and memory exist
			if err := f(); err != nil {
				return err
			}
		}
		if err := w.Barrier(); err != nil {
			return err
		}
		if w.Rank() == 0 {
			b.ResetTimer()
		}
		for range b.N {
			if err := f(); err != nil {
				return err
			}
		}
		if err := w.Barrier(); err != nil {
			return err
		}
		if w.Rank() == 0 {
			b.StopTimer()
		}
		return w.Barrier()
	})
}

func BenchmarkCollectives(b *testing.B) {
	for _, n := range []int{1, 2, 8} {
		for _, c := range []struct {
			name    string
			prepare func(w mpi.World) func() error
		}{
			{"barrier", func(w mpi.World) func() error { return w.Barrier }},
			{"allreduce-8", func(w mpi.World) func() error {
				x, sum := []float64{1}, []float64{0}
				return func() error { return w.Allreduce(mpi.Of(x), mpi.Of(sum), mpi.Sum) }
			}},
			{"bcast-1k", func(w mpi.World) func() error {
				x := make([]byte, 1024)
				return func() error { return w.Bcast(mpi.Of(x), 0) }
			}},
			{"alltoallv-1k", func(w mpi.World) func() error {
				x, y, counts := make([]float64, 128*n), make([]float64, 128*n), make([]int, n)
				for i := range counts {
					counts[i] = 128
				}
				return func() error { return w.Alltoallv(mpi.Of(x), counts, nil, mpi.Of(y), counts, nil) }
			}},
			{"allreduce-1m", func(w mpi.World) func() error {
				x := make([]float64, 1<<17)
				return func() error { return w.Allreduce(mpi.InPlace, mpi.Of(x), mpi.Sum) }
			}},
			{"ibarrier", func(w mpi.World) func() error {
				return func() error { return wait(w.Ibarrier()) }
			}},
			{"sendrecv-8", func(w mpi.World) func() error {
				x, y := []float64{1}, []float64{0}
				return func() error {
					_, err := w.Sendrecv(mpi.Of(x), (w.Rank()+1)%n, 0, mpi.Of(y), mpi.AnySource, 0)
					return err
				}
			}},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) { bench(b, n, c.prepare) })
		}
	}
}

// BenchmarkWin measures operations of rank 0 on the window of rank 1, which only waits.
func BenchmarkWin(b *testing.B) {
	for _, name := range []string{"direct", "messages", "fast", "tcp"} {
		o := winNets[name]
		if name == "fast" {
			o.OneSided = mpi.Messages // R of the iWARP paper
		}
		for _, c := range []struct {
			name  string
			bytes int
			do    func(win *mpi.Win, x []int64) error
		}{
			{"put-flush", 8, func(win *mpi.Win, x []int64) error { return win.Put(mpi.Of(x), 1, mpi.At(0)) }},
			{"put-flush", 4 << 10, func(win *mpi.Win, x []int64) error { return win.Put(mpi.Of(x), 1, mpi.At(0)) }},
			{"put-flush", 64 << 10, func(win *mpi.Win, x []int64) error { return win.Put(mpi.Of(x), 1, mpi.At(0)) }},
			{"put-flush", 1 << 20, func(win *mpi.Win, x []int64) error { return win.Put(mpi.Of(x), 1, mpi.At(0)) }},
			{"get-flush", 8, func(win *mpi.Win, x []int64) error { return win.Get(mpi.Of(x), 1, mpi.At(0)) }},
			{"get-flush", 1 << 20, func(win *mpi.Win, x []int64) error { return win.Get(mpi.Of(x), 1, mpi.At(0)) }},
			{"fetch-flush", 8, func(win *mpi.Win, x []int64) error { return win.FetchAndOp(mpi.Of(x), mpi.Of(x), 1, 0, mpi.Sum) }},
			{"accumulate-flush", 4 << 10, func(win *mpi.Win, x []int64) error { return win.Accumulate(mpi.Of(x), 1, mpi.At(0), mpi.Sum) }},
			{"put-many", 8, func(win *mpi.Win, x []int64) error {
				for range 63 {
					if err := win.Put(mpi.Of(x), 1, mpi.At(0)); err != nil {
						return err
					}
				}
				return win.Put(mpi.Of(x), 1, mpi.At(0))
			}},
		} {
			b.Run(fmt.Sprintf("%s/%s-%d", name, c.name, c.bytes), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(c.bytes))
				job(b, 2, o, func(w mpi.World) error {
					win, _, err := mpi.WinAllocate[int64](w.Comm, c.bytes/8)
					require.NoError(b, err)
					if w.Rank() == 0 {
						x := make([]int64, c.bytes/8)
						require.NoError(b, win.LockAll())
						for i := range 10 + b.N {
							if i == 10 {
								b.ResetTimer()
							}
							require.NoError(b, c.do(win, x))
							require.NoError(b, win.Flush(1))
						}
						b.StopTimer()
						require.NoError(b, win.UnlockAll())
					}
					return win.Free()
				})
			})
		}
	}
}
