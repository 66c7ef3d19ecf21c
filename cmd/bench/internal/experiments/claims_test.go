package experiments

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// readTables reads the rows of testdata/reproduced.txt by experiment.
func readTables(t *testing.T) map[string][]bench.Row {
	t.Helper()
	text, err := os.ReadFile("testdata/reproduced.txt")
	require.NoError(t, err)
	rows := map[string][]bench.Row{}
	var experiment string
	var unit, axis string
	var xs []float64
	numbers := func(words []string) (list []float64) {
		for _, w := range words {
			v, err := strconv.ParseFloat(w, 64)
			require.NoError(t, err, w)
			list = append(list, v)
		}
		return list
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "experiment":
			experiment = words[1]
		case strings.Contains(line, "|"):
			parts := strings.Split(strings.TrimPrefix(line, "table "), "|")
			unit, axis, xs = strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1]), numbers(strings.Fields(parts[2]))
		default:
			ys := numbers(words[1:])
			require.True(t, len(ys) <= len(xs), line)
			for i, x := range xs {
				rows[experiment] = append(rows[experiment], bench.Row{
					Experiment: experiment, Series: words[0], X: x, XUnit: axis, Y: ys[min(i, len(ys)-1)], YUnit: unit,
				})
			}
		}
	}
	return rows
}

// TestClaimsCanHold feeds every experiment figures that reproduce its claims.
func TestClaimsCanHold(t *testing.T) {
	rows := readTables(t)
	for _, e := range bench.Default.All() {
		for _, o := range e.Judge(rows[e.Name], false, nil) {
			require.True(t, o.IsPass(), "%s: %s\n%v", e.Name, o.Sentence, o)
			require.NotEmpty(t, o.Checks, o.Sentence)
		}
		delete(rows, e.Name)
	}
	require.Empty(t, rows, "of no experiment")
}

// TestClaimsCanFail feeds every experiment adverse figures: each check of each statement must
// miss its limit, and refute the statement, with one figure changed.
func TestClaimsCanFail(t *testing.T) {
	rows := readTables(t)
	statements, checks := 0, 0
	for _, e := range bench.Default.All() {
		failed := make([]map[int]bool, len(e.Claims)) // checks that a change refuted, by statement
		for k := range rows[e.Name] {
			for _, change := range []func(float64) float64{
				func(y float64) float64 { return 1000*y + 1 },
				func(y float64) float64 { return y / 1000 },
			} {
				adverse := slices.Clone(rows[e.Name])
				adverse[k].Y = change(adverse[k].Y)
				for i, o := range e.Judge(adverse, false, nil) {
					if failed[i] == nil {
						failed[i] = map[int]bool{}
					}
					for n, c := range o.Checks {
						if !c.Holds && o.Word == bench.Refuted {
							require.Contains(t, o.String(), "refuted because ")
							failed[i][n] = true
						}
					}
				}
			}
		}
		for i, o := range e.Judge(rows[e.Name], false, nil) {
			statements++
			for n, c := range o.Checks {
				checks++
				require.True(t, failed[i][n], "%s: %s\n%s: nothing refutes it", e.Name, o.Sentence, c.Description)
			}
		}
	}
	require.Greater(t, statements, 140)
	require.Greater(t, checks, 300)
}

// TestEvidence: the figures on which the cause of a refutation rests are measured by its experiment, and can
// fail.
func TestEvidence(t *testing.T) {
	rows := readTables(t)
	n := 0
	for _, e := range bench.Default.All() {
		for _, s := range e.Claims {
			if s.Evidence == nil {
				continue
			}
			n++
			require.NotEmpty(t, s.Because, s.Sentence)
			evidence := bench.Experiment{Claims: []bench.Statement{{Sentence: s.Sentence, Compare: s.Evidence}}}
			require.True(t, evidence.Judge(rows[e.Name], false, nil)[0].IsPass(), "%s: %s", e.Name, s.Sentence)
			adverse := slices.Clone(rows[e.Name])
			failed := false
			for k := range adverse {
				y := adverse[k].Y
				adverse[k].Y = y / 1000
				failed = failed || evidence.Judge(adverse, false, nil)[0].Word == bench.Refuted
				adverse[k].Y = y
			}
			require.True(t, failed, "%s: %s", e.Name, s.Sentence)
		}
	}
	require.Positive(t, n)
}

// TestWrongAccount: an account of the memory of channels that misses a slot, or has one too many, is refuted
// by the measured memory, at either end.
func TestWrongAccount(t *testing.T) {
	found, err := bench.Default.Find("acp-memory")
	require.NoError(t, err)
	e := found[0]
	for _, role := range channelRoles {
		for _, slots := range []int{2, 4, 8} {
			for _, wrong := range []float64{-1, 1} {
				rows := readTables(t)[e.Name]
				for i := range rows {
					if rows[i].Series == channelSide(role.name, slots)+accountSuffix && rows[i].YUnit == measure.Bytes {
						rows[i].Y += wrong * rows[i].X
					}
				}
				refuted := 0
				for _, o := range e.Judge(rows, false, nil) {
					if o.Word == bench.Refuted {
						refuted++
						require.Contains(t, o.Sentence, "The live heap of a "+role.name+" grows by 1 to 1.4 times")
					}
				}
				require.Equal(t, 1, refuted, "%s, %d slots, %v too many", role.name, slots, wrong)
			}
		}
	}
}

// TestEveryFigure requires a statement about each figure and table of the papers that an
// experiment reproduces, except for ACP fig. 6, of which the paper says nothing that could be
// judged.
func TestEveryFigure(t *testing.T) {
	about := map[string]int{}
	for _, e := range bench.Default.All() {
		for i, s := range e.Claims {
			about[e.SourceOf(i)]++
			if e.SourceOf(i) != bench.Adapter {
				require.NotEmpty(t, s.Paper, "%s: %s", e.Name, s.Sentence)
			}
			require.True(t, strings.HasSuffix(s.Sentence, "."), s.Sentence)
		}
	}
	for paper, figures := range map[string]string{
		"SDP":   "fig. 6a, fig. 6b, fig. 8, fig. 9, fig. 10a, fig. 10b, sec. 2.2",
		"RCUD":  "fig. 6a, fig. 6b, fig. 6c, fig. 7a, fig. 7b, fig. 8, fig. 9, fig. 10, fig. 11, sec. 4.2",
		"ACP":   "fig. 7, fig. 8, fig. 9, fig. 10, fig. 11, fig. 12, table I, table II, table III, sec. IV",
		"IWARP": "fig. 4a, fig. 4b, fig. 5, fig. 6, fig. 7a, fig. 7b, fig. 8a, fig. 8b",
	} {
		for figure := range strings.SplitSeq(figures, ", ") {
			require.Positive(t, about[fmt.Sprintf("%s %s", paper, figure)], "%s %s", paper, figure)
		}
	}
}

// TestFigureNames: the names by which the papers call their figures, one by one and as a list, find
// the experiments with statements about them. A part finds a whole figure, too. SDP has a shorter
// version with other numbers.
func TestFigureNames(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"SDP fig. 6a", "sdp-latency"},
		{"SDP fig. 6b", "sdp-bandwidth"},
		{"SDP fig. 6", "sdp-bandwidth sdp-latency"},
		{"SDP fig. 8", "mpi-flow sdp-progress"},
		{"SDP fig. 9", "sdp-utilization"},
		{"SDP fig. 9(b)", "sdp-utilization"},
		{"SDP fig. 10", "dc-isosurface dc-microscope"},
		{"SDP fig. 10(a)", "dc-microscope"},
		{"SDP fig. 10b", "dc-isosurface"},
		{"SDP short fig. 4a", "sdp-latency"},
		{"SDP short figure 4(b)", "sdp-bandwidth"},
		{"SDP short fig. 5", "mpi-flow sdp-progress"},
		{"SDP short figs. 6a, 6b", "sdp-utilization"},
		{"SDP short fig. 7", "dc-isosurface dc-microscope"},
		{"RCUD fig. 6a", "ib-qp-memory sim-qp-memory"},
		{"RCUD fig. 6b", "ib-qp-latency"},
		{"RCUD Figure 6(c)", "ib-concurrency"},
		{"RCUD fig. 7a", "a2a-rdma sim-a2a"},
		{"RCUD fig. 7b", "a2a-hybrid sim-hybrid"},
		{"RCUD fig. 8", "ib-transports"},
		{"RCUD fig. 9", "a2a-ud sim-a2a"},
		{"RCUD fig. 9a", "a2a-ud sim-a2a"},
		{"RCUD figs. 10, 11", "ud-rdma-read ud-rdma-write"},
		{"RCUD figs. 10 and 11", "ud-rdma-read ud-rdma-write"},
		{"RCUD Figure 10(a)", "ud-rdma-read"},
		{"RCUD fig. 6d", ""},
		{"RCUD sec. 3.2", "a2a-hybrid sim-qp-memory"},
		{"RCUD sec. 7", ""},
		{"IWARP fig. 5b", "mpi-put"},
		{"ACP fig. 6", "acp-gma"},
		{"ACP table I", "acp-memory"},
		{"ACP tables I, II, III", "acp-memory"},
		{"ACP figs. 7, 8", "acp-bandwidth acp-pingpong"},
		{"ACP figs. 9, 10", "acp-slots"},
		{"ACP figs. 11, 12", "acp-connect"},
		{"ACP fig. 12", "acp-connect"},
		{"IWARP fig. 4", "mpi-bandwidth mpi-latency"},
		{"IWARP figs. 5, 6", "mpi-get mpi-put"},
		{"IWARP figs. 7, 8a", "imb-allgather imb-allreduce imb-barrier"},
		{"IWARP fig. 8b", "nas-cg nas-is"},
		{"IWARP fig. 6a", "mpi-get"},
		{"fig. 6a", "acp-gma ib-qp-memory mpi-get sdp-latency sim-qp-memory"},
		{"fig. 9a", "a2a-ud acp-slots sdp-utilization sim-a2a"},
		{"fig. 9b", "a2a-ud acp-slots sdp-utilization sim-a2a"},
		{"fig. 4a", "mpi-latency"},
		{"figure 12", "acp-connect"},
		{"fig. 1", ""},
	} {
		found, err := bench.Default.Match(c.name)
		var names []string
		for _, e := range found {
			names = append(names, e.Name)
		}
		slices.Sort(names)
		require.Equal(t, c.want, strings.Join(names, " "), c.name)
		require.Equal(t, c.want == "", err != nil, c.name)
		again, _ := bench.Default.Find(c.name) // that of `bench run`
		require.Len(t, again, len(found), c.name)
	}
}

// TestPointsAreBounded: a size or a number beyond the range of an experiment is refused with the
// range.
func TestPointsAreBounded(t *testing.T) {
	points := []string{"sizes", "latency", "bandwidth", "payloads", "small", "pings", "qps", "peers", "senders", "ranks", "connections", "slots", "limits", "rc-limit", "memory", "lists", "slot-sizes"}
	for _, e := range bench.Default.All() {
		for _, p := range e.Params {
			if (p.Kind != bench.Ints && p.Kind != bench.Int) || !slices.Contains(points, p.Name) || strings.HasPrefix(e.Name, "dc-") {
				continue
			}
			require.Positive(t, p.Max, "%s: %s", e.Name, p.Name)
			err := bench.CheckSettings([]*bench.Experiment{e}, bench.Settings{p.Name: strconv.Itoa(p.Max + 1)})
			require.ErrorContains(t, err, fmt.Sprintf("out of range [%d, %d]", max(1, p.Min), p.Max), e.Name)
		}
	}
}

// TestOneRunJudgesAll: the statements of an experiment about different points of an axis are judged by one run.
func TestOneRunJudgesAll(t *testing.T) {
	found, err := bench.Default.Find("a2a-rdma")
	require.NoError(t, err)
	require.NoError(t, bench.CheckSettings(found, bench.Settings{"ranks": "32,61"}), "its statements are about 32 and about 61 ranks")
}

// TestPaperNumbers checks that no statement would be refuted by the number of its paper.
func TestPaperNumbers(t *testing.T) {
	n := 0
	for _, e := range bench.Default.All() {
		for i := range e.Claims {
			require.True(t, e.Claims[i].AcceptsNumber(), "%s: %s", e.Name, e.Claims[i].Sentence)
			if e.Claims[i].Number != 0 {
				n++
			}
		}
	}
	require.Greater(t, n, 20)
}
