package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
	"github.com/softrnic/softrnic/rnic"
)

func TestMain(m *testing.M) {
	proc.ServeIfWorker()
	goleak.VerifyTestMain(m)
}

func init() {
	proc.Register("bench-test", "crash", func(context.Context, *proc.Worker) error {
		panic("the worker fell over")
	})
}

// experiment returns an experiment that emits one row and returns the result of end.
func experiment(name string, layer bench.Layer, end func(context.Context) error) *bench.Experiment {
	return &bench.Experiment{
		Name: name, Source: bench.Adapter, Layer: layer, Tour: bench.Settings{},
		Claims: []bench.Statement{claim("Claim of "+name+".", bench.AtMost(5))},
		Axes:   []bench.Axis{{Name: "size", Unit: measure.Bytes}},
		Params: []bench.Param{{Name: "size", Kind: bench.Int, Default: "64", Doc: "bytes"}},
		Run: func(ctx context.Context, r *bench.Run) error {
			r.Plan(1)
			r.Step("the only step")
			r.Emit(bench.Row{Series: "s", X: float64(r.Int("size")), XUnit: measure.Bytes, Y: 5, YUnit: measure.Microseconds})
			return end(ctx)
		},
	}
}

// claim returns a statement about the row of experiment, which is 5.
func claim(sentence string, limit bench.Limit) bench.Statement {
	return bench.Statement{
		Sentence: sentence,
		Compare:  bench.Value{Of: []string{"s"}, Unit: measure.Microseconds, At: bench.Everywhere(measure.Bytes), Limit: limit},
	}
}

func succeed(context.Context) error { return nil }

// refuted returns an experiment whose row refutes its claim.
func refuted(name string) *bench.Experiment {
	e := experiment(name, bench.LayerVerbs, succeed)
	e.Claims = []bench.Statement{claim("Claim of "+name+".", bench.AtMost(2))}
	return e
}

func wrong(context.Context) error { return errors.New("two and two made five") }

func crash(ctx context.Context) error {
	g, err := proc.Start(ctx, proc.Options{}, proc.Spec{Name: "bench-test", Role: "crash"})
	if err != nil {
		return err
	}
	defer g.Close()
	_, err = proc.Call[int, int](ctx, g, 1)
	return err
}

// runBench runs the command line with the given experiments.
func runBench(t *testing.T, experiments []*bench.Experiment, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var g bench.Registry
	for _, e := range experiments {
		g.Register(e)
	}
	return runRegistry(t.Context(), t, &g, args...)
}

func runRegistry(ctx context.Context, t *testing.T, g *bench.Registry, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, diag bytes.Buffer
	a := &app{registry: g, stdout: &out, stderr: &diag, tourTime: tourTime, saveDir: t.TempDir()}
	status = a.runCommandLine(ctx, args)
	return status, out.String(), diag.String()
}

func four() []*bench.Experiment {
	return []*bench.Experiment{
		experiment("good", bench.LayerUDP, succeed),
		refuted("other"),
		experiment("wrong", bench.LayerVerbs, wrong),
		experiment("crash", bench.LayerVerbs, crash),
	}
}

func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		stderr string
	}{
		{"run good", 0, ""},
		{"run other", 0, ""},
		{"run good other --quick --set size=4K", 0, ""},
		{"list", 0, ""},
		{"--help", 0, ""},
		{"run wrong", 1, "1 of 1 experiments failed: wrong"},
		{"run wrong good", 1, "1 of 2 experiments failed: wrong"},
		{"run crash --json", 1, "panic: the worker fell over"},
		{"run", 2, "run: missing experiment name"},
		{"run nosuch", 2, "unknown experiment \"nosuch\"; `bench list` shows the names"},
		{"run good --set sizes=1", 2, `unknown parameter "sizes"; did you mean "size"?; known parameters:`},
		{"run good --set size=huge", 2, `size=huge: "huge" is not a number`},
		{"run good --set size", 2, "key=value"},
		{"run good --fast", 2, "unknown flag: --fast; `bench run --help` lists the flags"},
		{"nosuch", 2, "unknown command \"nosuch\" of `bench`; want one of completion, imb, list, nas, osu, record, report, run"},
		{"good", 2, "\"good\" is an experiment: `bench run good`"},
		{"adapter", 2, "\"adapter\" is a source of experiments: `bench run \"adapter\"`"},
		{"--quick", 2, "unknown flag: --quick; the flag belongs to `bench report` and `bench run`"},
		{"list --set size=1", 2, "unknown flag: --set; `bench list --help` lists the flags"},
		{"list goo *r", 0, ""},
		{"list extra", 2, "no experiment matches \"extra\"; `bench list` shows the names"},
		{"list good [", 2, "malformed pattern \"[\", want one like sdp-*"},
		{"report all", 2, "bench report: unexpected argument \"all\""},
	} {
		t.Run(c.args, func(t *testing.T) {
			status, _, stderr := runBench(t, four(), strings.Fields(c.args)...)
			require.Equal(t, c.status, status, stderr)
			require.Contains(t, stderr, c.stderr)
		})
	}
}

func TestRunText(t *testing.T) {
	status, stdout, stderr := runBench(t, four(), "run", "wrong", "good", "other")
	require.Equal(t, 1, status)
	require.Contains(t, stdout, "FAILED  wrong: two and two made five")
	require.Contains(t, stdout, "claim   Claim of good. (the adapter itself)\n        -> holds: s at 64 B, in us 5.00 (at most 5)\n", "a failure does not stop the others")
	require.Contains(t, stdout, "claim   Claim of other. (the adapter itself)\n        -> refuted because s at 64 B, in us 5.00 (at most 2): the cause is not measured\n")
	require.Contains(t, stderr, "good 1/1 the only step")
	require.Contains(t, stderr, "cores ", "the machine is described")
}

func TestRunOut(t *testing.T) {
	dir := t.TempDir()
	status, _, _ := runBench(t, four(), "run", "good", "--out", dir)
	require.Zero(t, status)
	for _, ext := range []string{"json", "jsonl", "csv", "txt", "svg"} {
		require.FileExists(t, filepath.Join(dir, "good."+ext))
	}
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, names, 5, "and nothing else")

	// A directory that is not writable is an error before the measurement.
	for _, command := range [][]string{{"run", "good"}, {"report"}} {
		status, stdout, stderr := runBench(t, four(), append(command, "--out", filepath.Join(dir, "good.txt"))...)
		require.Equal(t, 1, status)
		require.Equal(t, 1, strings.Count(stderr, "good.txt"), stderr)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.Empty(t, stdout)
	}

	// A failed write to stdout is reported once.
	lost := filepath.Join(t.TempDir(), "out")
	vanish := experiment("vanish", bench.LayerUDP, func(context.Context) error {
		require.NoError(t, os.RemoveAll(lost))
		require.NoError(t, os.WriteFile(lost, nil, 0o600))
		return nil
	})
	status, _, stderr := runBench(t, []*bench.Experiment{vanish}, "report", "--out", lost)
	require.Equal(t, 1, status)
	require.Equal(t, 1, strings.Count(stderr, "mkdir "+lost), stderr)
}

func TestList(t *testing.T) {
	_, stdout, _ := runBench(t, four(), "list")
	require.Equal(t, 8, strings.Count(stdout, "\n"), "a line for each experiment and each statement")
	require.Contains(t, stdout, "good             adapter                no run is recorded\n  -                                    Claim of good.\n")
	_, stdout, _ = runBench(t, four(), "list", "-v")
	require.Contains(t, stdout, "good  [UDP; the adapter itself]\n    No run is recorded.\n  - Claim of good.\n"+
		"    compared: s in us at every point: at most 5\n    over size (B)\n      --set size=64                   bytes\n\n")
	dir := t.TempDir()
	status, _, stderr := runBench(t, four(), "run", "good", "other", "--out", dir)
	require.Zero(t, status, stderr)
	_, stdout, _ = runBench(t, four(), "list", "--from", dir)
	require.Contains(t, stdout, "good             adapter                1 holds\n  holds        5.00 (at most 5)        Claim of good.\n")
	require.Contains(t, stdout, "  refuted      5.00 (at most 2)        Claim of other.\n")
	_, stdout, _ = runBench(t, four(), "list", "--from", dir, "other")
	require.Contains(t, stdout, "  - Claim of other.\n    here:  refuted because s at 64 B, in us 5.00 (at most 2): the cause is not measured\n")
	_, stdout, _ = runBench(t, four(), "list", "--json", "--from", dir, "other")
	require.Contains(t, stdout, `"outcome":"refuted","ours":"s at 64 B, in us 5.00 (at most 2)"`)
	status, _, stderr = runBench(t, four(), "list", "--from", t.TempDir())
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "no files of `bench run --out`")
	long := experiment("long", bench.LayerUDP, succeed)
	long.Params[0].Kind, long.Params[0].Default = bench.Ints, "1,2,4,8,16,32,64,128,256,512"
	long.Axes[0] = bench.Axis{Name: "queue pairs that take turns", Unit: "queue pairs"}
	_, stdout, _ = runBench(t, []*bench.Experiment{long}, "list", "-v")
	require.Contains(t, stdout, "    over queue pairs that take turns\n      --set size=1,2,4,8,16,32,64,128,256,512\n"+strings.Repeat(" ", 38)+"bytes\n")
	_, stdout, _ = runBench(t, four(), "list", "--json")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 4)
	for names, want := range map[string][]string{
		"o": {"other"}, "*o*": {"good", "other", "wrong"}, "crash go": {"good", "crash"}, "wrong": {"wrong"},
	} {
		_, stdout, _ := runBench(t, four(), append(strings.Fields("list --json"), strings.Fields(names)...)...)
		require.Equal(t, len(want), strings.Count(stdout, "\n"), stdout)
		for _, name := range want {
			require.Contains(t, stdout, `"experiment":"`+name+`"`)
		}
	}
	for _, line := range lines {
		var e struct{ Experiment, Source, Claim string }
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.NotEmpty(t, e.Experiment)
		require.NotEmpty(t, e.Source)
		require.NotEmpty(t, e.Claim)
	}
}

// TestListPapers checks the list of the real experiments: a line for each and for each of its
// statements, the papers below, and the results that the papers report.
func TestListPapers(t *testing.T) {
	_, stdout, _ := runRegistry(t.Context(), t, &bench.Default, "list")
	lines := strings.Split(stdout, "\n")
	n := 0
	for _, e := range bench.Default.All() {
		require.True(t, strings.HasPrefix(lines[n], e.Name+" "), lines[n])
		n += 1 + len(e.Claims)
		for _, p := range e.Papers() {
			require.Contains(t, strings.Join(strings.Fields(stdout), " "), p.String())
		}
		for i, c := range e.Claims {
			if e.SourceOf(i) != bench.Adapter {
				require.Contains(t, e.Reported(), c.Paper, e.Source)
			}
		}
	}
	require.LessOrEqual(t, len(lines), n+2+4*len(bench.Papers))
	for _, line := range lines {
		require.LessOrEqual(t, len(line), listWidth, line)
	}
	for args, want := range map[string]int{"fig. 6a": 5, "rcud": 13, "IWARP fig. 8b": 2, "Figure 12": 1, "RCUD sec. 3.2": 2, "SDP fig. 8": 2} {
		_, stdout, _ := runRegistry(t.Context(), t, &bench.Default, "list", "--json", args)
		require.Equal(t, want, strings.Count(stdout, "\n"), stdout)
	}
	status, stdout, _ := runBench(t, []*bench.Experiment{figure("one", "RCUD fig. 6a"), figure("two", "RCUD fig. 6b")}, "run", "rcud fig 6a")
	require.Zero(t, status)
	require.Contains(t, stdout, "Claim of one.")
	require.NotContains(t, stdout, "Claim of two.")
}

// figure returns an experiment that reproduces a figure of a paper.
func figure(name, source string) *bench.Experiment {
	e := experiment(name, bench.LayerVerbs, succeed)
	e.Source = source
	return e
}

func TestReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	status, stdout, _ := runBench(t, four(), "report", "--quick", "--out", dir)
	require.Equal(t, 1, status, "one of them is wrong")
	require.Contains(t, stdout, filepath.Join(dir, "report.html"))
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	for _, want := range []string{"Claim of good.", "in us 5.00 (at most 2)", "two and two made five", "the worker fell over"} {
		require.Contains(t, string(page), want)
	}

	status, _, stderr := runBench(t, four()[:2], "report", "--quick", "--out", dir)
	require.Zero(t, status, "a claim that does not hold is no failure")
	require.Contains(t, stderr, "[1/2] good, about ")
	require.Contains(t, stderr, "[2/2] other, about ")
}

// TestReportWhileRunning checks that the page exists after the first experiment and has its
// result.
func TestReportWhileRunning(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "report.html")
	second := experiment("second", bench.LayerVerbs, func(context.Context) error {
		html, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Contains(t, string(html), "Claim of good.")
		require.Contains(t, string(html), "not run")
		return nil
	})
	status, _, stderr := runBench(t, []*bench.Experiment{four()[0], second}, "report", "--out", dir)
	require.Zero(t, status, stderr)
	require.Equal(t, 1, strings.Count(stderr, page+" has the results so far\n"))
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.NotContains(t, string(html), "not run")
}

// TestReportFrom checks that the page created from files equals that of the run.
func TestReportFrom(t *testing.T) {
	dir := t.TempDir()
	status, _, _ := runBench(t, four(), "report", "--quick", "--set", "size=128", "--out", dir)
	require.Equal(t, 1, status)
	page := filepath.Join(dir, "report.html")
	before, err := os.ReadFile(page)
	require.NoError(t, err)
	require.NoError(t, os.Remove(page))
	status, stdout, stderr := runBench(t, four(), "report", "--from", dir)
	require.Zero(t, status, stderr)
	require.Equal(t, page+"\n", stdout)
	after, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))

	other := t.TempDir()
	status, stdout, _ = runBench(t, four(), "report", "--from", dir, "--out", other)
	require.Zero(t, status)
	require.Equal(t, filepath.Join(other, "report.html")+"\n", stdout)
	require.FileExists(t, filepath.Join(other, "good.csv"), "which the page links to")

	empty := t.TempDir()
	status, _, stderr = runBench(t, four(), "report", "--from", empty)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "--from: "+empty+": no files of")
	status, _, stderr = runBench(t, four(), "report", "--from", dir, "--quick")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "no experiments run; --quick not allowed")
}

func TestTour(t *testing.T) {
	absent := experiment("absent", bench.LayerUDP, wrong)
	absent.Tour = nil
	dir := t.TempDir()
	status, stdout, stderr := runBench(t, []*bench.Experiment{absent, experiment("good", bench.LayerUDP, succeed)}, "-v", "--out", dir)
	require.Zero(t, status)
	require.Contains(t, stderr, "good 1/1 the only step\n")
	require.NotContains(t, stdout, "absent")
	details, err := os.ReadFile(filepath.Join(dir, tourFile))
	require.NoError(t, err)
	require.Contains(t, string(details), "│ good ")
	require.Contains(t, stdout, string(details))
	require.Contains(t, stdout, "CHECKED received data of all layers against the data sent: no error in 1 experiments, 1 series\n")
	require.Contains(t, stdout, "DETAIL  "+filepath.Join(dir, tourFile)+" has all figures")

	status, stdout, stderr = runBench(t, []*bench.Experiment{experiment("good", bench.LayerUDP, succeed)}, "--out", filepath.Join(dir, tourFile))
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "--out: ")
	require.Empty(t, stdout)
}

// The tour prints one screen with the figures of layers-latency.
func TestTourScreen(t *testing.T) {
	latency := experiment("layers-latency", bench.LayerAll, succeed)
	latency.Params[0].Default = "8"
	run := latency.Run
	latency.Run = func(ctx context.Context, r *bench.Run) error {
		for series, y := range map[string]float64{"udp-spin": 3, "rc-write": 4, "tcp": 16} {
			r.Emit(bench.Row{Series: series, X: 8, XUnit: measure.Bytes, Y: y, YUnit: measure.Microseconds})
		}
		return run(ctx, r)
	}
	status, stdout, _ := runBench(t, []*bench.Experiment{latency})
	require.Zero(t, status)
	require.Contains(t, stdout, "VERBS   RDMA write of 8 B, one way     4.00 us    4.00  TCP            16.0 us   0.75     3.00 us\n")
	require.Contains(t, stdout, "barrier of 4 ranks            not measured: bench run imb-barrier\n")
	require.NotContains(t, stdout, "at most 2", "quick runs do not judge claims")
	require.LessOrEqual(t, strings.Count(stdout, "\n"), 30)
}

// A failed experiment and a failed check are visible, and the exit status is 1.
func TestTourFails(t *testing.T) {
	status, stdout, stderr := runBench(t, four())
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "2 of 4 experiments failed: crash, wrong")
	require.Contains(t, stdout, "FAILED  wrong: two and two made five\n")
	require.NotContains(t, stdout, "CHECKED")

	check := refuted("checked")
	check.Claims[0].Exact = true
	check.Claims = append(check.Claims, claim("It is fast.", bench.AtMost(1)))
	status, stdout, stderr = runBench(t, []*bench.Experiment{check})
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "bench: 1 failed checks: checked: s at 64 B, in us 5.00 (at most 2)\n")
	require.Contains(t, stdout, "FAILED  checked: s at 64 B, in us 5.00 (at most 2)\n")
	require.NotContains(t, stdout, "at most 1)")
}

// TestTourExperiments: the screen needs every experiment of the tour, and no other.
func TestTourExperiments(t *testing.T) {
	needed := map[string]bool{}
	for _, m := range regexp.MustCompile(`not measured: bench run (\S+)`).FindAllStringSubmatch(report.Screen{}.Summary(), -1) {
		needed[m[1]] = true
	}
	for _, e := range bench.Default.All() {
		require.Equal(t, needed[e.Name], e.Tour != nil, e.Name)
		delete(needed, e.Name)
	}
	require.Empty(t, needed)
}

// The tour respects its time limit. Skipped experiments are not failures.
func TestTourTime(t *testing.T) {
	var g bench.Registry
	g.Register(experiment("endless", bench.LayerUDP, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}))
	g.Register(experiment("late", bench.LayerVerbs, succeed))
	var out, diag bytes.Buffer
	a := &app{registry: &g, stdout: &out, stderr: &diag, tourTime: time.Millisecond, saveDir: t.TempDir()}
	require.Zero(t, a.runCommandLine(t.Context(), nil), diag.String())
	require.Contains(t, out.String(), "NOTE    no time for endless, late\n")
	require.NotContains(t, out.String(), "FAILED")
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var g bench.Registry
	g.Register(experiment("first", bench.LayerUDP, func(ctx context.Context) error {
		cancel()
		return errors.New("worker exited early") // by a signal to the process group
	}))
	g.Register(experiment("second", bench.LayerUDP, succeed))
	for _, args := range [][]string{{"run", "first", "second"}, {}} {
		status, stdout, stderr := runRegistry(ctx, t, &g, args...)
		require.Equal(t, 1, status)
		require.Contains(t, stderr, "interrupted at first")
		require.NotContains(t, stdout, "Claim of second.")
		tour := len(args) == 0
		require.NotContains(t, stdout+stderr, "FAILED")
		require.NotContains(t, stdout+stderr, "worker exited early")
		require.Equal(t, !tour, strings.Contains(stdout, "first: interrupted: "))
		require.Equal(t, tour, strings.Contains(stdout, "interrupted before first, second\n"))
	}
}

// The JSON lines of a real experiment have the documented form.
func TestJSONContract(t *testing.T) {
	status, stdout, stderr := runRegistry(t.Context(), t, &bench.Default, "run", "udp-raw", "--quick", "--json",
		"--set", "payloads=1024", "--set", "rounds=2", "--set", "time=5ms", "--set", "iters=50", "--set", "pings=24")
	require.Zero(t, status, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	last := len(lines) - 1
	require.Positive(t, last)
	series := map[string]bool{}
	for i, line := range lines {
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &o), line)
		if i == last {
			requireVerdict(t, o)
			break
		}
		requireRow(t, o)
		series[fmt.Sprint(o["series"], o["x"], o["y_unit"])] = true
		if b, ok := o["baseline"]; ok {
			require.True(t, series[fmt.Sprint(b, o["x"], o["y_unit"])], "the baseline stands before: %s", line)
		}
	}
}

func requireRow(t *testing.T, o map[string]any) {
	t.Helper()
	require.Equal(t, "udp-raw", o["experiment"])
	for _, k := range []string{"series", "x_unit", "y_unit"} {
		require.IsType(t, "", o[k], k)
		require.NotEmpty(t, o[k], k)
	}
	for _, k := range []string{"x", "y", "n", "p50", "p99", "min", "max"} {
		require.IsType(t, 0.0, o[k], k)
		require.Positive(t, o[k], k)
	}
	require.NotEmpty(t, o["rounds"])
	require.LessOrEqual(t, o["min"], o["p50"])
	require.LessOrEqual(t, o["p50"], o["p99"])
	require.LessOrEqual(t, o["p99"], o["max"])
	want := 12
	if _, ok := o["baseline"]; ok {
		require.IsType(t, "", o["baseline"])
		require.IsType(t, 0.0, o["ratio"])
		require.Positive(t, o["ratio"])
		want += 2
	}
	require.Len(t, o, want, "no other fields: %v", o)
}

func requireVerdict(t *testing.T, o map[string]any) {
	t.Helper()
	require.Equal(t, "udp-raw", o["experiment"])
	require.IsType(t, true, o["holds"])
	require.NotEmpty(t, o["claim"])
	statements, ok := o["statements"].([]any)
	require.True(t, ok)
	for _, s := range statements {
		require.NotEmpty(t, s.(map[string]any)["sentence"])
		require.NotEmpty(t, s.(map[string]any)["outcome"])
	}
	require.Len(t, o, 4)
}

func TestImpair(t *testing.T) {
	t.Setenv(rnic.EnvImpair, "")
	out, errs := &bytes.Buffer{}, &bytes.Buffer{}
	a := &app{registry: &bench.Registry{}, stdout: out, stderr: errs, tourTime: time.Second}
	require.Equal(t, 2, a.runCommandLine(t.Context(), []string{"list", "--impair", "lose 1%"}))
	require.Contains(t, errs.String(), "--impair")
	for name, value := range map[string]string{rnic.EnvImpair: "lose 1%", rnic.EnvAddr: "nowhere"} {
		before := os.Getenv(name)
		t.Setenv(name, value)
		require.Equal(t, 2, a.runCommandLine(t.Context(), []string{"list"}))
		require.Contains(t, errs.String(), name+": ")
		t.Setenv(name, before)
	}
	require.Equal(t, 0, a.runCommandLine(t.Context(), []string{"list", "--impair", "loss 1% seed 7"}))
	require.Equal(t, "loss 1% seed 7", os.Getenv(rnic.EnvImpair))
}

// TestMisspelt checks the right word that each error names. In the lines a plus stands for a
// blank within an argument.
func TestMisspelt(t *testing.T) {
	for line, want := range map[string]string{
		"rnu":                                     "did you mean `bench run`?",
		"osu_latncy":                              "did you mean `bench osu latency`?",
		"verbs-latncy":                            "did you mean `bench run verbs-latency`?",
		"verbs-latncy --quick":                    "did you mean `bench run verbs-latency`?",
		"verbs-latency --quick":                   "is an experiment: `bench run verbs-latency`",
		"run verbs-latncy":                        `did you mean "verbs-latency"?`,
		"list verbs-latncy":                       `did you mean "verbs-latency"?`,
		"run RCUD+fig.+6z":                        `did you mean "RCUD fig. 6`,
		"run verbs-latency --quik":                "did you mean --quick?",
		"run verbs-latency --set sise=1":          `did you mean "sizes"?`,
		"run verbs-latency --set series=rc-wriet": `did you mean "rc-write"?`,
		"run verbs-latency --impair lsos+1%":      `did you mean "loss"?`,
		"--verbsoe":                               "did you mean --verbose?",
		"report --form x":                         "did you mean --from?",
		"osu latncy":                              "did you mean `bench osu latency`?",
		"osu put_bw -s fenec":                     `did you mean "fence"?`,
		"osu put_bw -w craete":                    `did you mean "create"?`,
		"osu allreduce -T mpi_flaot":              `did you mean "mpi_float"?`,
		"imb PingPnog":                            `did you mean "PingPong"?`,
		"imb -mslog 1:2":                          "did you mean --msglog?",
		"nas cgg":                                 "did you mean `bench nas cg`?",
	} {
		args := strings.Split(line, " ")
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "+", " ")
		}
		status, stdout, stderr := runRegistry(t.Context(), t, &bench.Default, args...)
		require.Equal(t, statusUsage, status, line)
		require.Contains(t, stderr, want, line)
		require.Empty(t, stdout, line)
	}
}

// The estimate starts with assumed times and is scaled by actual ones.
func TestEstimate(t *testing.T) {
	all := four()[:3]
	e := newEstimate(all, bench.Options{Quick: true}, "")
	require.Equal(t, "about 24 s left", e.String())
	e.addElapsed(16 * time.Second)
	require.Equal(t, "about 32 s left", e.String())
	e.addElapsed(8 * time.Second)
	require.Equal(t, "about 12 s left", e.String())
	e.addElapsed(time.Second)
	require.Zero(t, e.remainingTime())

	require.Equal(t, "about 3 min left", newEstimate(all, bench.Options{}, "").String())
	e.left = []time.Duration{70 * time.Minute}
	e.expected = 0
	require.Equal(t, "about 1 h 10 min left", e.String())

	// A saved earlier run replaces the assumed time.
	dir := t.TempDir()
	res := &bench.Result{Experiment: all[0], Quick: true, Elapsed: 50 * time.Second}
	require.NoError(t, report.Save(dir, nil, res))
	require.Equal(t, "about 66 s left", newEstimate(all, bench.Options{Quick: true}, dir).String())
	require.Equal(t, "about 24 s left", newEstimate(all, bench.Options{Quick: true, Set: bench.Settings{"size": "8"}}, dir).String())
	require.Equal(t, "about 3 min left", newEstimate(all, bench.Options{}, dir).String())
}
