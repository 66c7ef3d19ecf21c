package osu

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// TestTable compares lines with those of the originals. Those of latency and bcast are from
// published outputs (versions 7.3 and 7.5).
func TestTable(t *testing.T) {
	r := &runner{pairs: 2}
	for _, c := range []struct {
		name string
		o    Options
		row  Row
		want string
	}{
		{"latency", Options{}, Row{Size: 1, Latency: 2.48}, `
# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       2.48
`},
		{"bcast", Options{Full: true}, Row{Size: 1, Latency: 7.61, Min: 6.38, Max: 8.84, Iterations: 1000}, `
# OSU MPI Broadcast Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
1                       7.61              6.38              8.84        1000
`},
		{"bw", Options{Type: Float, Validate: true, Tail: []int{9, 50}}, Row{Size: 4194304, Bandwidth: 4000.5, Tail: []float64{1, 2}}, `
# OSU MPI Bandwidth Test v7.4
# Datatype: MPI_FLOAT.
# Size      Bandwidth (MB/s)        Validation  P9 Tail BW(MB/s) P50 Tail BW(MB/s)
4194304              4000.50              Pass              1.00              2.00
`},
		{"mbw_mr", Options{Window: 64}, Row{Size: 8, Bandwidth: 10, Rate: 1.25e6}, `# OSU MPI Multiple Bandwidth / Message Rate Test v7.4
# [ pairs: 2 ] [ window size: 64 ]
# Datatype: MPI_CHAR.
# Size                  MB/s        Messages/s
8                      10.00        1250000.00
`},
		{"mbw_mr", Options{Window: 1, NoRate: true, Validate: true}, Row{Size: 8, Bandwidth: 10, Errors: 1}, `# OSU MPI Multiple Bandwidth / Message Rate Test v7.4
# [ pairs: 2 ] [ window size: 1 ]
# Datatype: MPI_CHAR.
# Size                  MB/s        Validation
8                      10.00              Fail
`},
		{"barrier", Options{Validate: true}, Row{Latency: 12.345}, `
# OSU MPI Barrier Latency Test v7.4
# Avg Latency(us)
            12.35
`},
		{"put_latency", Options{Full: true}, Row{Size: 1, Latency: 1.5}, `# OSU MPI_Put Latency Test v7.4
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_flush
# Datatype: MPI_CHAR.
# Size          Latency (us)
1                       1.50
`},
		{"put_bibw", Options{Sync: PSCW, Creation: Create, Tail: []int{50}}, Row{Size: 8, Bandwidth: 12.25, Tail: []float64{12}},
			`# OSU MPI_Put Bi-directional Bandwidth Test v7.4
# Window creation: MPI_Win_create
# Synchronization: MPI_Win_post/start/complete/wait
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s) P50 Tail BW(MB/s)
8                      12.25             12.00
`},
		{"put_bw", Options{Creation: Dynamic, Sync: Lock}, Row{Size: 8, Bandwidth: 12.25}, `# OSU MPI_Put Bandwidth Test v7.4
# Window creation: MPI_Win_create_dynamic
# Synchronization: MPI_Win_lock/unlock
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
8                      12.25
`},
		{"get_acc_latency", Options{Sync: LockAll}, Row{Size: 8, Latency: 3}, `# OSU MPI_Get_accumulate latency Test v7.4
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_lock_all/unlock_all
# Size          Latency (us)
8                       3.00
`},
		{"fop_latency", Options{Type: Int, Validate: true}, Row{Size: 4, Latency: 3}, `# OSU MPI_Fetch_and_op latency Test v7.4
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_flush
# Datatype: MPI_INT.
# Size          Latency (us)        Validation
4                       3.00            passed
`},
	} {
		test, err := Find(c.name)
		require.NoError(t, err)
		var b bytes.Buffer
		out := table{&b, test, c.o}
		require.NoError(t, out.writeHeader(r))
		require.NoError(t, out.writeRow(c.row))
		require.Equal(t, c.want, b.String())
	}
}

func TestPercentiles(t *testing.T) {
	values := make([]float64, 200)
	for i := range values {
		values[i] = float64(200 - i)
	}
	require.Equal(t, []float64{1, 2, 100, 198, 200}, percentilesOf(values, []int{0, 1, 50, 99, 100}))
	require.Equal(t, []float64{7, 7}, percentilesOf([]float64{7}, []int{0, 100}))
	require.Empty(t, percentilesOf(nil, []int{50}))
}

// TestCheckSees checks that wrong and misplaced data is detected.
func TestCheckSees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := Type(rapid.IntRange(0, len(types)-1).Draw(t, "type"))
		n := rapid.IntRange(32, 200).Draw(t, "elements")
		iteration, rank := rapid.IntRange(0, 11000).Draw(t, "iteration"), rapid.IntRange(0, 64).Draw(t, "rank")
		b := alignedBytes(n * typ.elemSize())
		typ.fillElements(b, iteration, rank)
		require.Zero(t, typ.countWrong(b, iteration, rank))
		require.Positive(t, typ.countWrong(b, iteration+1, rank), "the last iteration's")
		require.Positive(t, typ.countWrong(b, iteration, rank+1), "another's")
		at := rapid.IntRange(0, n-1).Draw(t, "at")
		typ.putElement(b, at, typ.getElement(b, at)+1)
		require.Equal(t, 1, typ.countWrong(b, iteration, rank))
		typ.fillElements(b, iteration, rank)
		copy(b, b[typ.elemSize()*rapid.IntRange(1, 16).Draw(t, "by"):])
		require.Positive(t, typ.countWrong(b, iteration, rank), "moved")
	})
}

// TestWrongDataFails checks that a collective without effect fails its validation on all ranks.
func TestWrongDataFails(t *testing.T) {
	require.NoError(t, mpitest.Run(3, func(w mpi.World) error {
		for _, test := range Tests() {
			if test.coll == nil || test.coll.invoke == nil {
				continue
			}
			broken := *test.coll
			broken.invoke = func(*collectiveCall) error { return nil }
			test.coll = &broken
			o := Defaults(test)
			o.Min, o.Max, o.Validate = 256, 512, true
			o.Small = Rounds{Iterations: 2}
			rows, err := Run(w.Comm, test, o)
			require.ErrorIs(t, err, ErrInvalid, test.Name)
			if w.Rank() == 0 {
				require.Len(t, rows, 1, "it stops")
			}
		}
		return nil
	}))
}

// TestWrongWindowFails checks that an operation without effect, or at a wrong offset, fails its
// validation at both ranks.
func TestWrongWindowFails(t *testing.T) {
	nothing := func(*windowAccess, int) error { return nil }
	elsewhere := func(a *windowAccess, k int) error {
		return a.win.Put(a.out[k], a.partner, a.targetPlace((k+1)%a.slots))
	}
	require.NoError(t, mpitest.Run(2, func(w mpi.World) error {
		for _, c := range []struct {
			name string
			do   func(*windowAccess, int) error
		}{
			{"put_latency", nothing}, {"get_latency", nothing}, {"put_bw", nothing}, {"get_bw", nothing}, {"put_bibw", nothing},
			{"acc_latency", nothing}, {"get_acc_latency", nothing}, {"fop_latency", nothing}, {"cas_latency", nothing},
			{"put_bw", elsewhere}, {"put_bibw", elsewhere},
		} {
			test, err := Find(c.name)
			require.NoError(t, err)
			broken := *test.win
			broken.invoke = c.do
			test.win = &broken
			o := Defaults(test)
			o.Min, o.Max, o.Validate, o.Window = 256, 512, true, 4
			o.Small = Rounds{Iterations: 8} // a single wrong element may pass some of them
			_, err = Run(w.Comm, test, o)
			require.ErrorIs(t, err, ErrInvalid, c.name)
		}
		return nil
	}))
}
