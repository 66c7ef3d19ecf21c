package osu_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/osu"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// TestNames checks the names of the originals.
func TestNames(t *testing.T) {
	var names []string
	for _, test := range osu.Tests() {
		names = append(names, test.Name)
		found, err := osu.Find("osu_" + test.Name)
		require.NoError(t, err)
		require.Equal(t, test.Title, found.Title)
	}
	require.Equal(t, strings.Fields("latency bw bibw mbw_mr multi_lat latency_mt latency_mp allgather allgatherv allreduce "+
		"alltoall alltoallv alltoallw barrier bcast gather gatherv reduce reduce_scatter reduce_scatter_block scatter scatterv "+
		"put_latency get_latency put_bw get_bw put_bibw acc_latency get_acc_latency fop_latency cas_latency"), names)
	_, err := osu.Find("osu_nothing")
	require.ErrorIs(t, err, osu.ErrTest)
	require.ErrorContains(t, err, "mbw_mr")
}

// quick returns options with few rounds and data validation, for one eager size and one larger
// size.
func quick(test osu.Test) osu.Options {
	o := osu.Defaults(test)
	o.Min, o.Max = 1, 64
	o.Small, o.Large = osu.Rounds{Iterations: 3, Warmup: 1}, osu.Rounds{Iterations: 2, Warmup: 1}
	o.Window, o.Validate, o.Full, o.Tail = 3, true, true, []int{50, 99}
	return o
}

// columns returns the numbers in the table's rows, without the verdict.
func columns(t *testing.T, table string) (rows [][]float64) {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		var row []float64
		for _, f := range strings.Fields(strings.ReplaceAll(line, "Pass", "")) {
			var v float64
			_, err := fmt.Sscan(f, &v)
			require.NoError(t, err, line)
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestAll runs every test with all element types, and with eager and larger sizes.
func TestAll(t *testing.T) {
	for _, ranks := range []int{2, 5} {
		out := map[string]*bytes.Buffer{}
		var tests []osu.Test
		for _, test := range osu.Tests() {
			if test.IsOneSided() {
				continue // TestOneSided
			}
			multi := test.IsCollective() || test.Name == "multi_lat" || test.Name == "mbw_mr"
			if ranks == 2 || multi {
				tests = append(tests, test)
				out[test.Name] = new(bytes.Buffer)
			}
		}
		require.NoError(t, mpitest.Run(ranks, func(w mpi.World) error {
			for i, test := range tests {
				o := quick(test)
				o.Type = osu.Type((i + ranks) % 3)
				o.Rotate, o.Multiple = i%2 == 0, i%2 == 0
				if test.Name == "latency_mt" {
					o.Senders = o.Receivers
				}
				for _, max := range []int{64, 40_000} {
					o.Out = out[test.Name] // of rank 0 only
					if o.Max = max; max > 64 {
						o.Min, o.Out = max, nil
					}
					rows, err := osu.Run(w.Comm, test, o)
					if err != nil {
						return err
					}
					for _, r := range rows {
						require.Positive(t, r.Latency+r.Bandwidth)
						require.LessOrEqual(t, r.Min, r.Max)
						require.Len(t, r.Tail, 2)
					}
				}
			}
			return nil
		}))
		for i, test := range tests {
			text := out[test.Name].String()
			require.Contains(t, text, "# OSU MPI "+test.Title+" Test v7.4\n")
			rows := columns(t, text)
			first := 1
			if (i+ranks)%3 != 0 {
				first = 4 // bytes of an element
			}
			switch {
			case test.Name == "barrier":
				require.Len(t, rows, 1)
				require.Len(t, rows[0], 1+3+2)
				continue
			case test.Name == "latency_mt" || test.Name == "latency_mp":
				require.Contains(t, text, "# Number of ")
			}
			require.EqualValues(t, first, rows[0][0], text)
			require.EqualValues(t, 64, rows[len(rows)-1][0])
			for _, row := range rows {
				require.Len(t, row, len(rows[0]))
			}
		}
	}
}

// TestOneSided runs every one-sided test with all synchronizations, element types and window
// creations, over the adapter and in packets.
func TestOneSided(t *testing.T) {
	for _, how := range []mpi.OneSided{mpi.Direct, mpi.Messages} {
		require.NoError(t, mpitest.RunOptions(2, mpi.Options{OneSided: how}, func(w mpi.World) error {
			n := 0
			for _, test := range osu.Tests() {
				for sync := osu.Flush; sync <= osu.Fence && test.IsOneSided(); sync++ {
					o := quick(test)
					o.Sync, o.Type, o.Creation = sync, osu.Type(n%4), osu.Creation((n+n/6)%3)
					n++
					if test.Name == "put_bibw" && sync != osu.PSCW && sync != osu.Fence || test.Name == "cas_latency" && o.Type == osu.Float {
						_, err := osu.Run(w.Comm, test, o)
						require.ErrorIs(t, err, osu.ErrOptions)
						continue
					}
					for _, size := range []int{8, 40_000} {
						out := new(bytes.Buffer)
						o.Out, o.Min, o.Max = out, size, size
						rows, err := osu.Run(w.Comm, test, o)
						if err != nil {
							return fmt.Errorf("%s, %v: %w", test.Name, sync, err)
						}
						if w.Rank() == 0 {
							checkOneSided(t, test, out.String(), rows)
						}
					}
				}
			}
			return nil
		}))
	}
}

// TestDynamic runs every one-sided test on dynamic windows, over all transports.
func TestDynamic(t *testing.T) {
	for name, o := range map[string]mpi.Options{"rdma": {}, "ud": {Net: mpi.UD}, "tcp": {Net: mpi.TCP}, "messages": {OneSided: mpi.Messages}} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, mpitest.RunOptions(2, o, func(w mpi.World) error {
				for _, test := range osu.Tests() {
					if !test.IsOneSided() {
						continue
					}
					o, out := quick(test), new(bytes.Buffer)
					o.Creation, o.Min, o.Max, o.Out = osu.Dynamic, 2048, 2048, out
					rows, err := osu.Run(w.Comm, test, o)
					if err != nil {
						return fmt.Errorf("%s: %w", test.Name, err)
					}
					if w.Rank() == 0 {
						checkOneSided(t, test, out.String(), rows)
						require.Contains(t, out.String(), "# Window creation: MPI_Win_create_dynamic\n")
					}
				}
				return nil
			}))
		})
	}
}

// checkOneSided checks that each row has figures and is in the table.
func checkOneSided(t *testing.T, test osu.Test, text string, rows []osu.Row) {
	require.Contains(t, text, "# OSU "+test.Title+" Test v7.4\n# Window creation: MPI_Win_")
	table := columns(t, strings.ReplaceAll(text, "passed", ""))
	require.Len(t, table, len(rows))
	require.Len(t, rows, 1)
	if test.Name == "fop_latency" || test.Name == "cas_latency" {
		require.LessOrEqual(t, rows[0].Size, 8, "one element")
	}
	for i, r := range rows {
		require.Positive(t, r.Latency+r.Bandwidth)
		require.EqualValues(t, r.Size, table[i][0])
		require.Len(t, table[i], 4, "size, figure, two percentiles")
	}
}

// TestThreads runs several numbers of senders and receivers.
func TestThreads(t *testing.T) {
	test, err := osu.Find("latency_mt")
	require.NoError(t, err)
	require.NoError(t, mpitest.Run(2, func(w mpi.World) error {
		for _, c := range [][2]int{{1, 1}, {1, 3}, {3, 1}, {2, 5}} {
			o := quick(test)
			o.Min, o.Max, o.Validate = 0, 1, false
			o.Small.Iterations, o.Senders, o.Receivers = 11, c[0], c[1]
			rows, err := osu.Run(w.Comm, test, o)
			if err != nil {
				return err
			}
			if w.Rank() == 0 {
				require.Len(t, rows, 2)
			}
		}
		return nil
	}))
}

func TestBadOptions(t *testing.T) {
	find := func(name string) osu.Test {
		test, err := osu.Find(name)
		require.NoError(t, err)
		return test
	}
	require.NoError(t, mpitest.Run(3, func(w mpi.World) error {
		for _, name := range []string{"latency", "bw", "bibw", "latency_mt", "latency_mp", "put_bw", "cas_latency"} {
			_, err := osu.Run(w.Comm, find(name), osu.Defaults(find(name)))
			require.ErrorIs(t, err, osu.ErrRanks)
		}
		_, err := osu.Run(w.Self, find("bcast"), osu.Defaults(find("bcast")))
		require.ErrorIs(t, err, osu.ErrRanks)
		_, err = osu.Run(w.Self, osu.Test{Name: "mine"}, osu.Options{})
		require.ErrorIs(t, err, osu.ErrTest)

		for _, wrong := range []func(*osu.Options){
			func(o *osu.Options) { o.Min = -1 },
			func(o *osu.Options) { o.Min, o.Max = 2, 1 },
			func(o *osu.Options) { o.Max = 1 << 30; o.Max++ },
			func(o *osu.Options) { o.Small.Iterations = 0 },
			func(o *osu.Options) { o.Large.Warmup = -1 },
			func(o *osu.Options) { o.Window = 0 },
			func(o *osu.Options) { o.Pairs = 2 },
			func(o *osu.Options) { o.Root = 3 },
			func(o *osu.Options) { o.Senders = 0 },
			func(o *osu.Options) { o.Type = 4 },
			func(o *osu.Options) { o.Sync = 6 },
			func(o *osu.Options) { o.Creation = 3 },
			func(o *osu.Options) { o.Tail = []int{50, 101} },
		} {
			o := osu.Defaults(find("mbw_mr"))
			wrong(&o)
			_, err := osu.Run(w.Comm, find("mbw_mr"), o)
			require.ErrorIs(t, err, osu.ErrOptions)
		}
		return nil
	}))
	_, err := osu.ParseType("mpi_double")
	require.ErrorIs(t, err, osu.ErrOptions)
	_, err = osu.ParseCreation("shared")
	require.ErrorIs(t, err, osu.ErrOptions)
	for _, name := range []string{"create", "allocate", "dynamic"} {
		how, err := osu.ParseCreation(name)
		require.NoError(t, err)
		require.Equal(t, name, how.String())
	}
	for _, name := range []string{"mpi_char", "mpi_int", "mpi_float", "mpi_long"} {
		typ, err := osu.ParseType(name)
		require.NoError(t, err)
		require.Equal(t, name, typ.String())
	}
}

// TestMemLimit checks that sizes above the memory limit are skipped.
func TestMemLimit(t *testing.T) {
	test, err := osu.Find("allgather")
	require.NoError(t, err)
	require.NoError(t, mpitest.Run(2, func(w mpi.World) error {
		o := quick(test)
		o.Max, o.MemLimit = 1024, 4*128
		rows, err := osu.Run(w.Comm, test, o)
		if w.Rank() == 0 {
			require.Equal(t, 128, rows[len(rows)-1].Size)
		}
		return err
	}))
}

// TestOutputFails checks that write errors are returned.
func TestOutputFails(t *testing.T) {
	test, err := osu.Find("barrier")
	require.NoError(t, err)
	closed, w := io.Pipe()
	require.NoError(t, closed.Close())
	o := quick(test)
	o.Out = w
	var failed error
	_ = mpitest.Run(2, func(w mpi.World) error {
		if w.Rank() == 0 {
			_, failed = osu.Run(w.Comm, test, o)
			o := o
			o.Out = nil
			_, err := osu.Run(w.Comm, test, o)
			return err
		}
		_, err := osu.Run(w.Comm, test, o)
		return err
	})
	require.ErrorIs(t, failed, io.ErrClosedPipe)
}
