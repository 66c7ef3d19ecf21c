package imb_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/imb"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

func TestNames(t *testing.T) {
	all, err := imb.Find()
	require.NoError(t, err)
	var names []string
	for _, b := range all {
		names = append(names, b.Name)
	}
	require.Equal(t, strings.Fields("PingPong PingPongSpecificSource PingPongAnySource PingPing PingPingSpecificSource PingPingAnySource "+
		"Sendrecv Exchange Bcast Allgather Allgatherv Gather Gatherv Scatter Scatterv Alltoall Alltoallv Reduce Reduce_scatter "+
		"Reduce_scatter_block Reduce_local Allreduce Barrier Uniband Biband"), names)
	two, err := imb.Find("barrier", "UNIBAND")
	require.NoError(t, err)
	require.Equal(t, []string{"Barrier", "Uniband"}, []string{two[0].Name, two[1].Name})
	_, err = imb.Find("Barrier", "Nothing")
	require.ErrorIs(t, err, imb.ErrBenchmark)
	require.ErrorContains(t, err, "Allgatherv")
}

func quick() imb.Options {
	o := imb.Defaults()
	o.Sizes, o.Repetitions, o.Window = []int{0, 64, 40_000}, 3, 4
	return o
}

// TestAll runs every benchmark on five ranks: in groups of two and four, and on all.
func TestAll(t *testing.T) {
	var out bytes.Buffer // output of rank 0
	var got []imb.Row
	require.NoError(t, mpitest.Run(5, func(w mpi.World) error {
		o := quick()
		o.Out, o.RootShift = &out, true
		rows, err := imb.Run(w.Comm, imb.Benchmarks(), o)
		if w.Rank() == 0 {
			got = rows
		}
		return err
	}))
	groups := map[string][]int{}
	for _, r := range got {
		if list := groups[r.Benchmark]; len(list) == 0 || list[len(list)-1] != r.Ranks {
			groups[r.Benchmark] = append(list, r.Ranks)
		}
		require.Equal(t, 3, r.Repetitions)
		require.LessOrEqual(t, r.Min, r.Avg)
		require.LessOrEqual(t, r.Avg, r.Max*(1+1e-9))
		require.Positive(t, r.Max)
	}
	for _, b := range imb.Benchmarks() {
		want := []int{2, 4, 5}
		switch {
		case strings.HasPrefix(b.Name, "PingP"):
			want = []int{2}
		case strings.HasSuffix(b.Name, "band"):
			want = []int{2, 4}
		}
		require.Equal(t, want, groups[b.Name], b.Name)
		for _, n := range want {
			require.Contains(t, out.String(), fmt.Sprintf("# Benchmarking %s \n# #processes = %d \n", b.Name, n))
		}
	}
	require.Contains(t, out.String(), "# ( 3 additional processes waiting in MPI_Barrier)\n")
	require.Contains(t, out.String(), "# ( 1 additional process waiting in MPI_Barrier)\n")
	require.Contains(t, out.String(), "# All processes entering MPI_Finalize")
}

// TestRepetitions checks the limits of volume, time and memory on repetitions.
func TestRepetitions(t *testing.T) {
	list, err := imb.Find("Sendrecv")
	require.NoError(t, err)
	require.NoError(t, mpitest.Run(2, func(w mpi.World) error {
		for _, c := range []struct {
			change func(*imb.Options)
			want   []int
		}{
			{func(o *imb.Options) { o.Volume = 1000 }, []int{20, 10, 1}},
			{func(o *imb.Options) { o.Volume, o.NoWarmUp = 1000, true }, []int{20, 10, 1}},
			{func(o *imb.Options) { o.Time = 1 }, []int{1, 1, 1}}, // a nanosecond
			{func(o *imb.Options) { o.Time = 0 }, []int{20, 20, 20}},
			{func(o *imb.Options) { o.Time = time.Hour }, []int{20, 20, 20}},
			{func(o *imb.Options) { o.Memory = 200 }, []int{20, 20, 0}},
		} {
			o := imb.Defaults()
			o.Sizes, o.Repetitions = []int{0, 100, 2000}, 20
			c.change(&o)
			rows, err := imb.Run(w.Comm, list, o)
			if err != nil {
				return err
			}
			var got []int
			for _, r := range rows {
				got = append(got, r.Repetitions)
			}
			if w.Rank() == 0 {
				require.Equal(t, c.want, got)
			}
		}
		return nil
	}))
}

// TestSizes checks the sizes of the original, and multiples of the element size for reductions.
func TestSizes(t *testing.T) {
	list, err := imb.Find("Bcast", "Allreduce", "Barrier")
	require.NoError(t, err)
	require.NoError(t, mpitest.Run(2, func(w mpi.World) error {
		o := quick()
		o.Sizes, o.MinLog, o.MaxLog = nil, 1, 4
		rows, err := imb.Run(w.Comm, list, o)
		sizes := map[string][]int{}
		for _, r := range rows {
			sizes[r.Benchmark] = append(sizes[r.Benchmark], r.Size)
		}
		if w.Rank() == 0 {
			require.Equal(t, map[string][]int{"Bcast": {0, 2, 4, 8, 16}, "Allreduce": {0, 4, 8, 16}, "Barrier": {0}}, sizes)
		}
		return err
	}))
}

func TestBadArguments(t *testing.T) {
	require.NoError(t, mpitest.Run(1, func(w mpi.World) error {
		for _, name := range []string{"PingPong", "Biband"} {
			list, err := imb.Find(name)
			require.NoError(t, err)
			_, err = imb.Run(w.Comm, list, quick())
			require.ErrorIs(t, err, imb.ErrRanks)
		}
		_, err := imb.Run(w.Comm, []imb.Benchmark{{Name: "Mine"}}, quick())
		require.ErrorIs(t, err, imb.ErrBenchmark)
		for _, wrong := range []func(*imb.Options){
			func(o *imb.Options) { o.MinRanks = 0 },
			func(o *imb.Options) { o.MinLog = -1 },
			func(o *imb.Options) { o.MinLog, o.MaxLog = 3, 2 },
			func(o *imb.Options) { o.MaxLog = 40 },
			func(o *imb.Options) { o.Repetitions = 0 },
			func(o *imb.Options) { o.Window = 0 },
			func(o *imb.Options) { o.Time = -1 },
			func(o *imb.Options) { o.Sizes = []int{1, -1} },
		} {
			o := quick()
			wrong(&o)
			_, err := imb.Run(w.Comm, nil, o)
			require.ErrorIs(t, err, imb.ErrOptions)
		}
		closed, out := io.Pipe()
		require.NoError(t, closed.Close())
		o := quick()
		o.Out = out
		_, err = imb.Run(w.Comm, nil, o)
		require.ErrorIs(t, err, io.ErrClosedPipe)
		return nil
	}))
}
