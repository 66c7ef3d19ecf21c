package imb

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"
)

// width is the width of all columns.
const width = 13

// A table writes the output. Without a writer it writes nothing.
type table struct{ w io.Writer }

func (t table) writef(format string, args ...any) error {
	if t.w == nil {
		return nil
	}
	_, err := fmt.Fprintf(t.w, format, args...)
	return err
}

// ruleLine returns a comment line that spans the given number of columns.
func ruleLine(columns int) string { return "#" + strings.Repeat("-", columns*width-1) + "\n" }

// writeBanner writes the description of the run.
func (t table) writeBanner(list []Benchmark, o Options) error {
	var b strings.Builder
	rule := "#" + strings.Repeat("-", 64) + "\n"
	fmt.Fprintf(&b, "%s#    MPI-1 part of the Intel(R) MPI Benchmarks, by softrnic\n%s", rule, rule)
	fmt.Fprintf(&b, "# Date                  : %s\n", time.Now().Format(time.ANSIC))
	fmt.Fprintf(&b, "# Machine               : %s\n", runtime.GOARCH)
	fmt.Fprintf(&b, "# System                : %s\n", runtime.GOOS)
	b.WriteString("# MPI Thread Environment: MPI_THREAD_MULTIPLE\n\n")
	if o.Sizes != nil {
		b.WriteString("# Message lengths were user defined\n")
	} else {
		fmt.Fprintf(&b, "# Minimum message length in bytes:   %d\n# Maximum message length in bytes:   %d\n", 0, 1<<o.MaxLog)
	}
	b.WriteString("#\n# MPI_Datatype                   :   MPI_BYTE \n# MPI_Datatype for reductions    :   MPI_FLOAT \n" +
		"# MPI_Op                         :   MPI_SUM  \n#\n#\n\n# List of Benchmarks to run:\n\n")
	for _, one := range list {
		fmt.Fprintf(&b, "# %s\n", one.Name)
	}
	return t.writef("%s", &b)
}

var columns = map[class][]string{
	single:     {"#bytes", "#repetitions", "t[usec]", "Mbytes/sec"},
	parallel:   {"#bytes", "#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]", "Mbytes/sec"},
	rate:       {"#bytes", "#repetitions", "Mbytes/sec", "Msg/sec"},
	collective: {"#bytes", "#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]"},
	sync:       {"#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]"},
}

// writeHeader writes the lines above the rows of a group.
func (t table) writeHeader(b Benchmark, ranks, all int) error {
	var s strings.Builder
	names := columns[b.class]
	fmt.Fprintf(&s, "\n%s# Benchmarking %s \n# #processes = %d \n", ruleLine(len(names)), b.Name, ranks)
	switch idle := all - ranks; {
	case idle == 1:
		s.WriteString("# ( 1 additional process waiting in MPI_Barrier)\n")
	case idle > 1:
		fmt.Fprintf(&s, "# ( %d additional processes waiting in MPI_Barrier)\n", idle)
	}
	s.WriteString(ruleLine(len(names)))
	for _, name := range names {
		fmt.Fprintf(&s, "%*s", width, name)
	}
	return t.writef("%s\n", &s)
}

// writeRow writes one row.
func (t table) writeRow(b Benchmark, r Row) error {
	var s strings.Builder
	if b.class != sync {
		fmt.Fprintf(&s, "%*d", width, r.Size)
	}
	if r.Repetitions == 0 {
		return t.writef("%s out-of-mem.; needed X=%8.3f GB; use flag \"-mem X\"\n", &s, float64(r.Needed)/(1<<30))
	}
	fmt.Fprintf(&s, "%*d", width, r.Repetitions)
	var values []float64
	switch b.class {
	case single:
		values = []float64{r.Max, r.Bandwidth}
	case parallel:
		values = []float64{r.Min, r.Max, r.Avg, r.Bandwidth}
	case rate:
		values = []float64{r.Bandwidth}
	default:
		values = []float64{r.Min, r.Max, r.Avg}
	}
	for _, v := range values {
		fmt.Fprintf(&s, "%*.2f", width, v)
	}
	if b.class == rate {
		fmt.Fprintf(&s, "%*.0f", width, r.Rate)
	}
	return t.writef("%s\n", &s)
}

func (t table) writeEnd() error { return t.writef("\n\n# All processes entering MPI_Finalize\n\n") }
