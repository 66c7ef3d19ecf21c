//go:build interop && linux

package interop

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
	"github.com/softrnic/softrnic/interop/matrix"
)

// extent says how much of the matrix is run.
var extent = flag.String("matrix", "ci", "ci for a part in which every program, fault and pair occurs, in minutes; "+
	"wide for all of them with each other and with every address, MTU and size, if not in every combination, in an hour; "+
	"full for everything, in hours. wide and full write ../docs/rxe-matrix.md")

func full() bool { return *extent == "full" }
func wide() bool { return full() || *extent == "wide" }

func TestMain(m *testing.M) {
	lab.Main(func() int {
		code := m.Run()
		if wide() && flag.Lookup("test.run").Value.String() == "" {
			if err := results.WriteFile("../docs/rxe-matrix.md", head()); err != nil {
				fmt.Fprintln(os.Stderr, "interop:", err)
				return 1
			}
		}
		return code
	})
}

// results is what the run has found out so far, in the order of the document.
var (
	results  matrix.Matrix
	programT = results.Table("Programs",
		"The unmodified programs of rdma-core and perftest in the guest, with the softrnic command of the same name on "+
			"the other side. Runs differ in options, addresses (IPv4, IPv6), path MTU (1024, 4096) and message size (1 byte to "+
			"8 MiB, across the MTU). `ibv_*_pingpong` compare the payload on both sides. Programs on UC and UD wait for "+
			"every message, so they are run on a network that loses none. `rping`, `ucmatose` and `udaddy` connect by RDMA-CM.",
		"program", "softrnic is")
	payloadT = results.Table("Payloads",
		"Every operation in every size, from nothing to 8 MiB, with a pattern that is compared on arrival: SEND, SEND with "+
			"immediate, RDMA WRITE, RDMA WRITE with immediate, RDMA READ.",
		"from who asks", "addresses", "MTU")
	datagramT = results.Table("Payloads without a guarantee",
		"UC and UD: what arrives is whole and right, however little that is; on a clean network everything arrives.",
		"from the sender", "service")
	statusT = results.Table("Completion statuses",
		"What completes how at a, who asks, and at b, between two rxe, and whether a pair with softrnic does the same at "+
			"both sides. Where it does not, it is meant to.",
		"case")
	behaviourT = results.Table("Behaviour", "What needs more than one message to see.", "test", "case")
	counterT   = results.Table("Counters",
		"hw_counters of rxe, the counters of softrnic and a capture between the two: packets sent and received, duplicates, gaps, RNR "+
			"NAKs and sequence NAKs, fourteen numbers, all the same. Losses are on the way out of one side, so the capture is what the "+
			"other one sees. Of rxe's `rcvd_seq_err` the capture is only an upper bound: rxe counts a sequence NAK if it acknowledges something.",
		"from who asks", "addresses")
)

// head is the beginning of the document.
func head() string {
	text := "# softrnic beside Linux rxe: the matrix\n\n" +
		"Written by `go test -tags interop ./interop -matrix " + *extent + "`; see [softrnic and Linux rxe](linux-rxe.md) for how to read and repeat it. " +
		"A cell is the number of checks, all of which passed, unless it is bold.\n\nThe guest:"
	for i, v := range lab.Versions() {
		if i > 0 {
			text += ","
		}
		text += " " + v
	}
	return text + ". It runs under QEMU's emulation, one to two hundred times slower than a machine.\n"
}

// cell runs a test and counts it in a cell of the matrix.
func cell(t *testing.T, table *matrix.Table, column string, row []string, name string, f func(t *testing.T)) {
	test := t.Name() + "/" + strings.ReplaceAll(name, " ", "_")
	passed := 0
	if table != statusT && kept()[test] {
		passed = 1
	} else if t.Run(name, f) {
		passed = 1
		note(t, test)
	}
	table.Count(column, passed, 1, row...)
}

var keep = flag.String("keep", "", "a `file` with the names of tests that have passed: those are counted and not run again, and what "+
	"passes is added. So an interrupted matrix goes on. It is for one state of the sources: remove the file when they change")

// kept are the tests that have passed before.
var kept = sync.OnceValue(func() map[string]bool {
	list := map[string]bool{}
	if *keep == "" {
		return list
	}
	b, err := os.ReadFile(*keep)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
	for name := range strings.Lines(string(b)) {
		list[strings.TrimSpace(name)] = true
	}
	return list
})

// note adds a test to the file.
func note(t *testing.T, name string) {
	if *keep == "" {
		return
	}
	f, err := os.OpenFile(*keep, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	_, err = fmt.Fprintln(f, name)
	require.NoError(t, errors.Join(err, f.Close()))
}
