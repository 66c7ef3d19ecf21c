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

// extent is the part of the matrix that is run: ci, wide or full.
var extent = flag.String("matrix", "ci", "ci for a part with every program, fault and pair, in minutes; "+
	"wide for all pairs of them and every address, MTU and size, but not every combination, in an hour; "+
	"full for all combinations, in hours. wide and full write ../docs/rxe-matrix.md")

func isFull() bool { return *extent == "full" }
func isWide() bool { return isFull() || *extent == "wide" }

func TestMain(m *testing.M) {
	lab.Main(func() int {
		code := m.Run()
		if isWide() && flag.Lookup("test.run").Value.String() == "" {
			if err := results.WriteFile("../docs/rxe-matrix.md", documentHead()); err != nil {
				fmt.Fprintln(os.Stderr, "interop:", err)
				return 1
			}
		}
		return code
	})
}

// results are the tables of the document, in order.
var (
	results  matrix.Matrix
	programT = results.Table("Programs",
		"The unmodified programs of rdma-core and perftest in the guest, with the softrnic command of the same name on "+
			"the other side. Runs differ in options, addresses (IPv4, IPv6), path MTU (1024, 4096) and message size (1 byte to "+
			"8 MiB, across the MTU). `ibv_*_pingpong` compare the payload on both sides. Programs on UC and UD wait for "+
			"every message, so they are run on a network that loses none. `rping`, `ucmatose` and `udaddy` connect by RDMA-CM.",
		"program", "softrnic is")
	dropinT = results.Table("Unmodified programs on both sides",
		"The same programs of rdma-core and perftest on both sides: on rxe in the guest, and with the drop-in library here. In the last "+
			"row two of them share softrnic's address.",
		"program", "softrnic is")
	payloadT = results.Table("Payloads",
		"Every operation in every size, from 0 to 8 MiB, with a pattern that is compared on arrival: SEND, SEND with "+
			"immediate, RDMA WRITE, RDMA WRITE with immediate, RDMA READ.",
		"requester to responder", "addresses", "MTU")
	datagramT = results.Table("Payloads without a guarantee",
		"UC and UD: every message that arrives is complete and correct; on a clean network all messages arrive.",
		"sender to receiver", "service")
	statusT = results.Table("Completion statuses",
		"The completions at a, the requester, and at b, the responder, between two rxe, and whether a pair with softrnic "+
			"has the same at both sides. The differences are intended.",
		"case")
	behaviourT = results.Table("Behaviour", "Behaviour that takes several messages.", "test", "case")
	counterT   = results.Table("Counters",
		"The hw_counters of rxe, the counters of softrnic and a capture between the two agree on fourteen numbers: packets sent "+
			"and received, duplicates, gaps, RNR NAKs and sequence NAKs. Packets are dropped when a side sends them, so the capture has "+
			"the packets that the other side receives. For rxe's `rcvd_seq_err` the capture is only an upper bound: rxe counts a "+
			"sequence NAK if it acknowledges a packet.",
		"requester to responder", "addresses")
)

// documentHead returns the beginning of the document.
func documentHead() string {
	text := "# softrnic beside Linux rxe: the matrix\n\n" +
		"Written by `go test -tags interop ./interop -matrix " + *extent + "`; [softrnic and Linux rxe](linux-rxe.md) describes how to read and repeat it. " +
		"A cell is the number of checks, all of which passed, unless it is bold.\n\nThe guest:"
	for i, v := range lab.Versions() {
		if i > 0 {
			text += ","
		}
		text += " " + v
	}
	return text + ". It runs under QEMU's emulation, one to two hundred times slower than a machine.\n"
}

// envPart names a part of the cells to run, such as 1/2 for every second one from the first on: with
// 2/2 the others are run.
const envPart = "INTEROP_PART"

// partOf returns the number of a part of the cells, from 0, and the number of parts.
var partOf = sync.OnceValues(func() (part, parts int) {
	text := os.Getenv(envPart)
	if text == "" {
		return 0, 1
	}
	if n, err := fmt.Sscanf(text, "%d/%d", &part, &parts); n != 2 || err != nil || part < 1 || part > parts {
		panic(fmt.Sprintf("%s: %q is no part of the cells; want for example 1/2", envPart, text))
	}
	return part - 1, parts
})

// cells is the number of cells so far.
var cells int

// cell runs a test and counts it in a cell of the matrix.
func cell(t *testing.T, table *matrix.Table, column string, row []string, name string, f func(t *testing.T)) {
	part, parts := partOf()
	if cells++; cells%parts != part {
		return
	}
	test := t.Name() + "/" + strings.ReplaceAll(name, " ", "_")
	passed := 0
	if table != statusT && kept()[test] {
		passed = 1
	} else if t.Run(name, f) {
		passed = 1
		recordPass(t, test)
	}
	table.Count(column, passed, 1, row...)
}

var keep = flag.String("keep", "", "a `file` with the names of tests that have passed: they are counted and not run again, and new "+
	"ones are added, so that an interrupted matrix can continue. Remove the file when the sources change")

// kept returns the names of the tests that have passed in earlier runs.
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

// recordPass adds a test to the file of -keep.
func recordPass(t *testing.T, name string) {
	if *keep == "" {
		return
	}
	f, err := os.OpenFile(*keep, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	_, err = fmt.Fprintln(f, name)
	require.NoError(t, errors.Join(err, f.Close()))
}
