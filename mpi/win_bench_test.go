package mpi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

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
