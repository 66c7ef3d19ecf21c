package imb

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTable checks the output format of the original.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		name       string
		ranks, all int
		row        Row
		want       string
	}{
		{"PingPong", 2, 4, Row{Size: 4194304, Repetitions: 10, Min: 1, Max: 387.38, Avg: 2, Bandwidth: 10827.45}, `
#---------------------------------------------------
# Benchmarking PingPong ` + `
# #processes = 2 ` + `
# ( 2 additional processes waiting in MPI_Barrier)
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
      4194304           10       387.38     10827.45
`},
		{"Sendrecv", 4, 4, Row{Size: 8, Repetitions: 1000, Min: 1.111, Max: 2.222, Avg: 1.5, Bandwidth: 7.2}, `
#-----------------------------------------------------------------------------
# Benchmarking Sendrecv ` + `
# #processes = 4 ` + `
#-----------------------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            8         1000         1.11         2.22         1.50         7.20
`},
		{"Barrier", 4, 5, Row{Repetitions: 1000, Min: 1, Max: 3, Avg: 2}, `
#---------------------------------------------------
# Benchmarking Barrier ` + `
# #processes = 4 ` + `
# ( 1 additional process waiting in MPI_Barrier)
#---------------------------------------------------
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000         1.00         3.00         2.00
`},
		{"Uniband", 2, 2, Row{Size: 1, Repetitions: 1000, Bandwidth: 3.456, Rate: 3456789}, `
#---------------------------------------------------
# Benchmarking Uniband ` + `
# #processes = 2 ` + `
#---------------------------------------------------
       #bytes #repetitions   Mbytes/sec      Msg/sec
            1         1000         3.46      3456789
`},
		{"Alltoall", 2, 2, Row{Size: 4194304, Needed: 3 << 29}, `
#----------------------------------------------------------------
# Benchmarking Alltoall ` + `
# #processes = 2 ` + `
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
      4194304 out-of-mem.; needed X=   1.500 GB; use flag "-mem X"
`},
	} {
		b, err := findBenchmark(c.name)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, table{&out}.writeHeader(b, c.ranks, c.all))
		require.NoError(t, table{&out}.writeRow(b, c.row))
		require.Equal(t, c.want, out.String())
	}
}

func TestGroups(t *testing.T) {
	for _, c := range []struct {
		b            Benchmark
		least, ranks int
		want         []int
	}{
		{Benchmark{}, 2, 1, []int{1}},
		{Benchmark{}, 2, 2, []int{2}},
		{Benchmark{}, 2, 11, []int{2, 4, 8, 11}},
		{Benchmark{}, 3, 11, []int{3, 6, 11}},
		{Benchmark{}, 99, 11, []int{11}},
		{Benchmark{even: true}, 2, 11, []int{2, 4, 8, 10}},
		{Benchmark{even: true}, 1, 3, []int{2}},
		{Benchmark{even: true}, 3, 7, []int{2, 6}},
		{Benchmark{twoRanks: true}, 4, 11, []int{2}},
	} {
		got, err := c.b.groupSizes(c.least, c.ranks)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}
