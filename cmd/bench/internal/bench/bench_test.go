package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// sample returns a complete experiment whose figure is the value of its parameter.
func sample(name string) *Experiment {
	return &Experiment{
		Name: name, Source: Adapter, Layer: LayerVerbs,
		Claims: []Statement{{
			Sentence: "One is one.",
			Compare:  Value{Of: []string{"one"}, Unit: measure.Microseconds, At: Everywhere(measure.Bytes), Limit: AtMost(1)}, Exact: true,
		}},
		Axes: []Axis{{Name: "size", Unit: measure.Bytes}},
		Params: []Param{
			{Name: "size", Kind: Int, Default: "64", Quick: "8", Doc: "bytes"},
			{Name: "ops", Kind: Words, Default: "read,write", Choices: []string{"read", "write"}, Doc: "operations"},
		},
		Run: func(_ context.Context, r *Run) error {
			r.Plan(1)
			r.Step("size %d", r.Int("size"))
			r.Emit(Row{Series: "one", X: float64(r.Int("size")), XUnit: measure.Bytes, Y: 1, YUnit: measure.Microseconds})
			return nil
		},
	}
}

func TestRegistry(t *testing.T) {
	var g Registry
	require.Empty(t, g.All())
	low := sample("z-low")
	low.Layer = LayerUDP
	for _, e := range []*Experiment{sample("b"), low, sample("a")} {
		g.Register(e)
	}
	var names []string
	for _, e := range g.All() {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"z-low", "a", "b"}, names, "by layer, then by name")

	found, err := g.Find("b", "z-low")
	require.NoError(t, err)
	require.Equal(t, "b", found[0].Name)
	require.Same(t, low, found[1])
	_, err = g.Find("a", "nosuch")
	require.EqualError(t, err, "unknown experiment \"nosuch\"; `bench list` shows the names")
}

func TestRegisterRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Experiment){
		"name":    func(e *Experiment) { e.Name = "Not So" },
		"claims":  func(e *Experiment) { e.Claims = nil },
		"compare": func(e *Experiment) { e.Claims[0].Compare = nil },
		"axes":    func(e *Experiment) { e.Axes = nil },
		"run":     func(e *Experiment) { e.Run = nil },
		"default": func(e *Experiment) { e.Params[0].Default = "many" },
		"quick":   func(e *Experiment) { e.Params[0].Quick = "few" },
		"kind":    func(e *Experiment) { e.Params[0].Kind = "number" },
		"choice":  func(e *Experiment) { e.Params[1].Default = "shout" },
		"tour":    func(e *Experiment) { e.Tour = Settings{"nosuch": "1"} },
	} {
		t.Run(name, func(t *testing.T) {
			var g Registry
			e := sample("x")
			spoil(e)
			require.Panics(t, func() { g.Register(e) })
			require.Empty(t, g.All())
		})
	}
	var g Registry
	g.Register(sample("x"))
	require.Panics(t, func() { g.Register(sample("x")) }, "twice")
}

func TestExperimentJSON(t *testing.T) {
	b, err := json.Marshal(sample("x").Describe(nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"experiment":"x","source":"the adapter itself","claim":"One is one.",
		"statements":[{"source":"the adapter itself","sentence":"One is one.","compared":"one in us at every point: at most 1"}],"layer":"verbs","tour":false,
		"axes":[{"name":"size","unit":"B"}],
		"params":[{"name":"size","kind":"int","default":"64","quick":"8","doc":"bytes"},
			{"name":"ops","kind":"words","default":"read,write","choices":["read","write"],"doc":"operations"}]}`, string(b))
	require.Equal(t, "Layer(99)", Layer(99).String())
}

func TestParamValues(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		text string
		want any
	}{
		{Int, "7", 7},
		{Int, "4K", 4096},
		{Int, "64KiB", 65536},
		{Int, "1MiB", 1 << 20},
		{Int, "2147483647", math.MaxInt32},
		{Ints, "1, 2,4K", []int{1, 2, 4096}},
		{Float, "0.5", 0.5},
		{Duration, "50ms", 50 * time.Millisecond},
		{Pause, "0", time.Duration(0)},
		{Pauses, "0, 250us,1ms", []time.Duration{0, 250 * time.Microsecond, time.Millisecond}},
		{Words, "a,b", []string{"a", "b"}},
	} {
		got, err := Param{Name: "p", Kind: c.kind}.parseValue(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got)
	}
	for _, c := range []struct {
		kind Kind
		text string
	}{
		{Int, ""}, {Int, "0"}, {Int, "-1"}, {Int, "4G"}, {Int, "2147483648"}, {Int, "2048M"}, {Int, "99999999999999999999"},
		{Ints, "1,,2"}, {Ints, ""}, {Float, "half"}, {Duration, "50"}, {Duration, "0s"}, {Duration, "-1ms"},
		{Pause, "-1ms"}, {Pause, "5"}, {Pauses, ""}, {Pauses, "0,soon"},
	} {
		_, err := Param{Name: "p", Kind: c.kind}.parseValue(c.text)
		require.ErrorContains(t, err, "p="+c.text+": ", "%s %q", c.kind, c.text)
	}
}

func TestParamBounds(t *testing.T) {
	p := Param{Name: "p", Kind: Ints, Min: 16, Max: 4096}
	v, err := p.parseValue("16,4K")
	require.NoError(t, err)
	require.Equal(t, []int{16, 4096}, v)
	for _, text := range []string{"15", "64,4097", "8K"} {
		_, err := p.parseValue(text)
		require.ErrorContains(t, err, "out of range [16, 4096]", text)
	}
	_, err = Param{Name: "p", Kind: Int, Min: 8}.parseValue("7")
	require.EqualError(t, err, `p=7: "7" out of range [8, 2147483647]`)
	_, err = Param{Name: "p", Kind: Int, Max: 8}.parseValue("9")
	require.EqualError(t, err, `p=9: "9" out of range [1, 8]`)
	_, err = Param{Name: "p", Kind: Int, Max: 8}.parseValue("0")
	require.EqualError(t, err, `p=0: "0" out of range [1, 8]`)
	_, err = p.parseValue("16,1TiB")
	require.EqualError(t, err, `p=16,1TiB: "1TiB" is not a number like 64, 4K or 1MiB, in the range [16, 4096]`)
	_, err = Param{Name: "p", Kind: Pauses}.parseValue("0,61s")
	require.EqualError(t, err, `p=0,61s: "61s" out of range [0, 1m0s]`)
	_, err = Param{Name: "p", Kind: Duration}.parseValue("10h")
	require.EqualError(t, err, `p=10h: "10h" out of range (0, 1h0m0s]`)
	_, err = Param{Name: "p", Kind: Ints, Check: MultipleOf(8)}.parseValue("8,4K,12")
	require.EqualError(t, err, `p=8,4K,12: "12" is not a multiple of 8`)
	_, err = Param{Name: "p", Kind: Ints, Check: IsPowerOfTwo}.parseValue("1,4,6")
	require.EqualError(t, err, `p=1,4,6: "6" is not a power of two`)
}

func TestSettings(t *testing.T) {
	s, err := ParseSettings([]string{"a=1", "b=x=y", "a=2", "c="})
	require.NoError(t, err)
	require.Equal(t, Settings{"a": "2", "b": "x=y", "c": ""}, s)
	for _, bad := range []string{"a", "=1", ""} {
		_, err := ParseSettings([]string{bad})
		require.ErrorContains(t, err, "key=value")
	}

	other := sample("other")
	other.Params = []Param{{Name: "depth", Kind: Int, Default: "1", Doc: "of the queue"}}
	both := []*Experiment{sample("x"), other}
	require.NoError(t, CheckSettings(both, Settings{"depth": "4", "size": "8"}), "each knows one of them")
	err = CheckSettings(both, Settings{"deep": "4"})
	require.ErrorContains(t, err, `unknown parameter "deep"`)
	require.ErrorContains(t, err, "x: size=64")
	require.ErrorContains(t, err, "read, write")
	require.ErrorContains(t, err, "other: depth=1")
	require.ErrorContains(t, CheckSettings(both, Settings{"depth": "0"}), "other: depth=0: ")
}

// log is a Progress that records its calls.
type log struct {
	bytes.Buffer
	plan  int
	steps []string
}

func (l *log) Plan(n int)        { l.plan = n }
func (l *log) Step(s string)     { l.steps = append(l.steps, s) }
func (l *log) Writer() io.Writer { return l }

func TestExecute(t *testing.T) {
	var p log
	var seen []Row
	res, err := Execute(t.Context(), sample("x"), Options{
		Quick: true, Progress: &p,
		OnRow: func(r Row) error { seen = append(seen, r); return nil },
	})
	require.NoError(t, err)
	require.Equal(t, []Row{{Experiment: "x", Series: "one", X: 8, XUnit: "B", Y: 1, YUnit: "us"}}, res.Rows)
	require.Equal(t, res.Rows, seen)
	require.Len(t, res.Outcomes, 1)
	require.Equal(t, "holds: one at 8 B, in us 1.00 (at most 1)", res.Outcomes[0].String())
	require.Equal(t, 1, p.plan)
	require.Equal(t, []string{"size 8"}, p.steps)

	res, err = Execute(t.Context(), sample("x"), Options{Set: Settings{"size": "1K", "unrelated": "1"}})
	require.NoError(t, err)
	require.Equal(t, 1024.0, res.Rows[0].X)
}

func TestExecuteFails(t *testing.T) {
	bad := errors.New("data was wrong")
	for want, run := range map[string]func(context.Context, *Run) error{
		"data was wrong":      func(context.Context, *Run) error { return bad },
		"no figures measured": func(context.Context, *Run) error { return nil },
		"NaN or infinite": func(_ context.Context, r *Run) error {
			r.EmitAgainst(Point{XUnit: "B", YUnit: "us"}, Sample{Series: "s"})
			return nil
		},
		"missing series or unit": func(_ context.Context, r *Run) error {
			r.Emit(Row{Series: "s", XUnit: "B"})
			return nil
		},
	} {
		e := sample("x")
		e.Run = run
		res, err := Execute(t.Context(), e, Options{})
		require.ErrorContains(t, err, "x: ")
		require.ErrorContains(t, err, want)
		require.Equal(t, err, res.Err)
	}

	_, err := Execute(t.Context(), sample("x"), Options{Set: Settings{"size": "big"}})
	require.ErrorContains(t, err, "size=big")
	full := errors.New("disk full")
	_, err = Execute(t.Context(), sample("x"), Options{OnRow: func(Row) error { return full }})
	require.ErrorIs(t, err, full)

	// A signal to the process group may end a worker before the context.
	signal := errors.New("ended by a signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	e := sample("x")
	e.Run = func(context.Context, *Run) error {
		cancel(signal)
		return errors.New("worker exited early")
	}
	_, err = Execute(ctx, e, Options{})
	require.EqualError(t, err, "x: interrupted: ended by a signal")
	require.ErrorIs(t, err, ErrInterrupted)
	require.ErrorIs(t, err, signal)
}

func TestUndeclaredParameterPanics(t *testing.T) {
	e := sample("x")
	e.Run = func(_ context.Context, r *Run) error {
		for _, use := range []func(){
			func() { r.Int("nosuch") },
			func() { r.Float("size") },
			func() { r.Ints("size") },
			func() { r.Duration("size") },
			func() { r.Words("size") },
		} {
			require.Panics(t, use)
		}
		return errors.New("end")
	}
	_, err := Execute(t.Context(), e, Options{})
	require.EqualError(t, err, "x: end")
}

// A JSON row has exactly the members that apply to it.
func TestRowJSON(t *testing.T) {
	bare := Row{Experiment: "x", Series: "s", X: 1, XUnit: "B", Y: 2.5, YUnit: "us"}
	b, err := json.Marshal(bare)
	require.NoError(t, err)
	require.JSONEq(t, `{"experiment":"x","series":"s","x":1,"x_unit":"B","y":2.5,"y_unit":"us"}`, string(b))

	full := bare
	full.Stats = &measure.Stats{N: 3, P50: 2.5, P99: 4, Max: 4}
	full.Against = &Against{Baseline: "udp", Ratio: 0.5}
	b, err = json.Marshal(full)
	require.NoError(t, err)
	require.JSONEq(t, `{"experiment":"x","series":"s","x":1,"x_unit":"B","y":2.5,"y_unit":"us",
		"n":3,"p50":2.5,"p99":4,"min":0,"max":4,"baseline":"udp","ratio":0.5}`, string(b))
	var back Row
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, full, back)

	absent := Row{Experiment: "x", Series: "openmpi", Absent: "not installed"}
	b, err = json.Marshal(absent)
	require.NoError(t, err)
	require.JSONEq(t, `{"experiment":"x","series":"openmpi","absent":"not installed"}`, string(b))
	back = Row{}
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, absent, back)
}

// A ratio over a zero baseline is not emitted.
func TestEmitAgainstNothing(t *testing.T) {
	e := sample("x")
	e.Run = func(_ context.Context, r *Run) error {
		r.EmitAgainst(Point{X: 8, XUnit: "B", YUnit: "%"}, Sample{Series: "tcp", Figures: []float64{0}}, Sample{Series: "sdp", Figures: []float64{3}})
		return nil
	}
	res, err := Execute(t.Context(), e, Options{})
	require.NoError(t, err)
	require.Len(t, res.Rows, 2)
	require.Nil(t, res.Rows[1].Against)
}

func TestEmitAgainst(t *testing.T) {
	e := sample("x")
	e.Run = func(_ context.Context, r *Run) error {
		ratios := r.EmitAgainst(Point{X: 8, XUnit: "B", YUnit: "us"},
			Sample{Series: "udp", Figures: []float64{2, 4, 1}},
			Sample{Series: "rc-write", Figures: []float64{3, 6, 1}, Stats: &measure.Stats{N: 300}})
		require.Equal(t, []float64{1.5}, ratios)
		return nil
	}
	res, err := Execute(t.Context(), e, Options{})
	require.NoError(t, err)
	require.Equal(t, []Row{
		{Experiment: "x", Series: "udp", X: 8, XUnit: "B", Y: 2, YUnit: "us", Rounds: []float64{2, 4, 1}, Stats: &measure.Stats{N: 3, P50: 2, P99: 4, Min: 1, Max: 4}},
		{Experiment: "x", Series: "rc-write", X: 8, XUnit: "B", Y: 3, YUnit: "us", Rounds: []float64{3, 6, 1}, Stats: &measure.Stats{N: 300}, Against: &Against{"udp", 1.5}},
	}, res.Rows)
}

// TestFromSource checks the selection of experiments by the sources that a reader types.
func TestFromSource(t *testing.T) {
	var g Registry
	for name, source := range map[string]string{
		"memory": "RCUD fig. 6a", "sdp-latency": "SDP fig. 6a", "read": "RCUD fig. 10", "write": "RCUD fig. 11", "even": "RCUD fig. 8",
		"connect": "ACP figs. 11, 12", "tables": "ACP tables I, II, III", "get": "IWARP fig. 6", "copy": "SDP sec. 2.2", "own": Adapter,
	} {
		g.Register(&Experiment{
			Name: name, Source: source, Claims: sample("x").Claims, Axes: []Axis{{"x", "B"}},
			Run: func(context.Context, *Run) error { return nil },
		})
	}
	for pattern, want := range map[string]string{
		"fig. 6a": "get memory sdp-latency", "Figure 6A": "get memory sdp-latency", "fig 6a": "get memory sdp-latency", "fig.6a": "get memory sdp-latency",
		"RCUD fig. 6a": "memory", "rcud 6a": "", "rcud": "even memory read write", "RCUD": "even memory read write",
		"fig. 6": "get memory sdp-latency", "fig. 1": "", "fig. 11": "connect write", "ACP fig. 12": "connect", "acp table II": "tables",
		"SDP": "copy sdp-latency", "connection-less transport": "even memory read write", "IWARP": "get", "sec. 2.2": "copy", "": "", "nothing": "",
	} {
		found, err := g.Find(pattern)
		if want == "" {
			require.ErrorContains(t, err, "unknown experiment", pattern)
			continue
		}
		require.NoError(t, err, pattern)
		var names []string
		for _, e := range found {
			names = append(names, e.Name)
		}
		require.Equal(t, want, strings.Join(names, " "), pattern)
		if pattern != "SDP" {
			matched, err := g.Match(pattern)
			require.NoError(t, err)
			require.Equal(t, found, matched, pattern)
		}
	}
	matched, err := g.Match("sdp")
	require.NoError(t, err)
	require.Len(t, matched, 1, "names come before sources")
	_, err = g.Find("read", "rcud")
	require.NoError(t, err)
}
