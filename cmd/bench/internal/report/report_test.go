package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/env"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

var machine = env.Fingerprint{{Name: "go", Value: "go1.26"}, {Name: "cpu", Value: `<fast> & "new"`}}

// result has bars (bandwidth at two places) and lines (latency over sizes).
func result() *bench.Result {
	rows := []bench.Row{
		{Series: "udp", X: 4096, XUnit: "B", Y: 7000, YUnit: "MB/s", Stats: &measure.Stats{N: 9, P50: 7000, P99: 7100, Min: 6500, Max: 7100}},
		{Series: "rc-write", X: 4096, XUnit: "B", Y: 6300, YUnit: "MB/s", Against: &bench.Against{Baseline: "udp", Ratio: 0.9}},
		{Series: "<ud&send>", X: 1024, XUnit: "B", Y: 0.25, YUnit: "MB/s"},
	}
	for x := 1.0; x <= 1<<20; x *= 2 {
		rows = append(rows,
			bench.Row{Series: "rc-write", X: x, XUnit: "B", Y: 3 + x/100, YUnit: "us"},
			bench.Row{Series: "rc-read", X: x, XUnit: "B", Y: 6 + x/100, YUnit: "us"})
	}
	for i := range rows {
		rows[i].Experiment = "verbs-x"
	}
	return &bench.Result{
		Experiment: &bench.Experiment{
			Name: "verbs-x", Source: "RCUD fig. 8", Layer: bench.LayerVerbs,
			Claims: []bench.Statement{{
				Sentence: "RC & UD are <even>.", Paper: "UD equal up to one MTU",
				Compare: bench.Value{Of: []string{"rc-write"}, Unit: "MB/s", At: bench.Everywhere("B"), Limit: bench.AtLeast(6000)},
			}},
		},
		Rows: rows, Elapsed: 1234 * time.Millisecond,
		Outcomes: []bench.Outcome{{Source: "RCUD fig. 8", Sentence: "RC & UD are <even>.", Paper: "UD equal up to one MTU", Word: bench.Reproduced, Ours: "0.9 × is enough"}},
	}
}

func failure() *bench.Result {
	return &bench.Result{
		Experiment: &bench.Experiment{Name: "verbs-y", Source: bench.Adapter, Layer: bench.LayerVerbs},
		Err:        errors.New("verbs-y: worker <rank 1> fell over"),
	}
}

func TestText(t *testing.T) {
	text := Text(result())
	require.Contains(t, text, "verbs-x (RCUD fig. 8)")
	require.Regexp(t, `MB/s +│ +1 KiB │ +4 KiB`, text)
	require.Regexp(t, `rc-write +│ +│ +6300 +0.90×`, text)
	require.Regexp(t, `us +│ rc-write │ rc-read`, text)
	require.Regexp(t, `1 MiB +│ +10489 │ +10492`, text)
	require.Contains(t, text, "n×: over udp in the same unit, measured in the same run\n"+RatioNote)
	require.Contains(t, text, "claim   RC & UD are <even>. (RCUD fig. 8: UD equal up to one MTU)\n        -> reproduced: 0.9 × is enough\nverdict 1 reproduced\n")

	res := result()
	res.Rows = append(res.Rows, bench.Row{Series: "openmpi", Absent: "not installed"})
	res.Outcomes[0].Word, res.Outcomes[0].Reason = bench.Refuted, "it has no cache"
	require.Contains(t, Text(res), "\nopenmpi: not installed\n")
	require.Contains(t, Text(res), "        -> refuted because 0.9 × is enough: it has no cache\nverdict 1 refuted\n")
	require.Contains(t, Text(failure()), "FAILED  verbs-y: worker <rank 1> fell over")

	interrupted := failure()
	interrupted.Err = fmt.Errorf("verbs-y: %w: by a signal", bench.ErrInterrupted)
	require.Contains(t, Text(interrupted), "\n\nverbs-y: interrupted: by a signal\n")
}

func TestDetails(t *testing.T) {
	res := result()
	res.Rows = append(res.Rows, bench.Row{Series: "openmpi", Absent: "not installed"})
	res.Outcomes = []bench.Outcome{{Word: bench.Refuted, Ours: "memory 5000 bytes (at most 4096)", Exact: true}, {Word: bench.Refuted, Ours: "slow"}}
	text := Details(machine, []*bench.Result{res, failure()})
	require.Regexp(t, `(?m)^│ verbs-x +│$`, text)
	require.Regexp(t, `udp +│ 4 KiB +│ 7000 +│ MB/s +│ 6500 +│ 7100 +│ 7100 +│`, text)
	require.Regexp(t, `rc-write +│ 4 KiB +│ 6300 +│ MB/s +│ +│ +│ +│ 0.90× udp`, text)
	require.Contains(t, text, "go go1.26, cpu")
	require.Contains(t, text, "\nFAILED  verbs-x: memory 5000 bytes (at most 4096)\nopenmpi: not installed\n")
	require.Contains(t, text, "\nFAILED  verbs-y: worker <rank 1> fell over\n")
	require.NotContains(t, text, "slow", "quick runs do not judge speed")
	require.Equal(t, 1, strings.Count(text, RatioNote))
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0123456: "0.0123", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 7490.2: "7490", 2.345e6: "2.35M", -5: "-5.00",
	} {
		require.Equal(t, want, formatNumber(v))
	}
	require.Equal(t, "0.90×", formatRatio(0.9))
	require.Equal(t, "0.015×", formatRatio(0.01501))
	require.Equal(t, "6.67×", formatRatio(6.667))
	for want, x := range map[string]float64{"8 B": 8, "1000 B": 1000, "4 KiB": 4096, "1 MiB": 1 << 20, "1 GiB": 1 << 30, "1025 B": 1025} {
		require.Equal(t, want, measure.FormatAt(x, "B"))
	}
	require.Equal(t, "10000 QPs", measure.FormatAt(10000, "QPs"))
	require.Equal(t, "1 request", measure.FormatAt(1, "requests"))
	require.Equal(t, "1 queue pair", measure.FormatAt(1, "queue pairs"))
	require.Equal(t, "1.5 requests", measure.FormatAt(1.5, "requests"))
	require.Equal(t, "1 us", measure.FormatAt(1, "us"))
	require.Equal(t, "1 B", measure.FormatAt(1, "B"))
	require.Equal(t, "0.5 %", measure.FormatAt(0.5, "%"))
}

// texts are the words in an SVG document, which must be well-formed.
func texts(t *testing.T, svg []byte) (words []string) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(svg))
	for in := ""; ; {
		tok, err := dec.Token()
		if err == io.EOF {
			return words
		}
		require.NoError(t, err)
		switch tok := tok.(type) {
		case xml.StartElement:
			in = tok.Name.Local
		case xml.EndElement:
			in = ""
		case xml.CharData:
			if in == "text" {
				words = append(words, string(tok))
			}
		}
	}
}

func TestSVG(t *testing.T) {
	svg, err := SVG(result())
	require.NoError(t, err)
	words := texts(t, svg)
	for _, want := range []string{"MB/s at 1 KiB", "MB/s at 4 KiB", "us", "rc-write", "rc-read", "udp", "<ud&send>", "4 KiB"} {
		require.Contains(t, words, want)
	}
	require.NotContains(t, string(svg), "NaN")
	require.Contains(t, string(svg), "sans-serif")

	svg, err = SVG(&bench.Result{})
	require.NoError(t, err)
	require.Nil(t, svg)
}

// Odd figures make a chart nevertheless.
func TestSVGOddFigures(t *testing.T) {
	row := func(x, y float64) bench.Row { return bench.Row{Series: "s", X: x, XUnit: "%", Y: y, YUnit: "us"} }
	for name, rows := range map[string][]bench.Row{
		"one":       {row(0, 0)},
		"same":      {row(1, 5), row(2, 5), row(3, 5)},
		"zeros":     {row(0, 0), row(1, 0), row(2, 0)},
		"negative":  {row(-1, -5), row(0, 5), row(100, 1e9)},
		"wide":      {row(1, 1e-3), row(10, 1), row(1e6, 1e9)},
		"same wide": {row(1, 5), row(10, 5), row(1e6, 5)},
	} {
		svg, err := SVG(&bench.Result{Rows: rows})
		require.NoError(t, err, name)
		require.NotEmpty(t, texts(t, svg))
		require.NotContains(t, string(svg), "NaN", name)
		require.NotContains(t, string(svg), "Inf", name)
	}
}

func TestPage(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Page(&b, []Saved{{result(), machine}, {failure(), machine}}))
	doc, err := html.Parse(&b)
	require.NoError(t, err)

	var svgs, rows, headings int
	links := map[string]bool{}
	files := map[string]bool{ // beside the page
		"report.jsonl": true, "report.csv": true, "./": true, "verbs-x.csv": true, "verbs-x.jsonl": true, "verbs-x.svg": true,
	}
	ids := map[string]bool{}
	var text strings.Builder
	for n := range doc.Descendants() {
		if n.Type == html.TextNode {
			text.WriteString(n.Data)
		}
		switch n.Data {
		case "svg":
			svgs++
		case "tr":
			rows++
		case "h2":
			headings++
		case "script", "link", "img", "iframe":
			require.Fail(t, "the page is to be whole without a network", n.Data)
		}
		for _, a := range n.Attr {
			if a.Key == "id" {
				ids[a.Val] = true
			}
			if a.Key == "href" || a.Key == "src" {
				links[a.Val] = true
			}
		}
	}
	require.Equal(t, 3, svgs)
	require.Equal(t, 2, headings, "one an experiment")
	for _, id := range []string{"verbs-x", "verbs-y", "source-RCUD", "source-ours", "refuted", "all"} {
		require.True(t, ids[id], id)
	}
	for href := range links {
		target, isID := strings.CutPrefix(href, "#")
		require.True(t, isID && ids[target] || files[href], href)
	}
	require.Equal(t, 2+2*2+1+len(result().Rows), rows)
	for _, want := range []string{`<fast> & "new"`, "RC & UD are <even>.", "0.9 × is enough", "reproduced", "worker <rank 1> fell over", "0.90× udp", "1.2s",
		"writes of 64 KiB", "1 reproduced, failed: 1 of 2 experiments", "UD equal up to one MTU", "rc-write changes most: 3.01 us at 1 B, 10489 us at 1 MiB.",
		"bench run verbs-x"} {
		require.Contains(t, text.String(), want)
	}
}

// pageOf returns the text of the page of results.
func pageOf(t *testing.T, results ...Saved) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Page(&b, results))
	return b.String()
}

// TestPageOfSeveralRuns: runs of several commits are not shown as one, and each section has its own date, commit and
// load.
func TestPageOfSeveralRuns(t *testing.T) {
	on := func(date, revision, load string) env.Fingerprint {
		return env.Fingerprint{{Name: "cores", Value: "2"}, {Name: "load", Value: load}, {Name: "revision", Value: revision}, {Name: "date", Value: date}}
	}
	first, second := result(), result()
	second.Experiment = &bench.Experiment{Name: "verbs-z", Source: bench.Adapter}
	page := pageOf(t, Saved{first, on("2026-01-02", "abc", "0.5")}, Saved{second, on("2026-03-04", "def", "7.5")})
	require.Contains(t, page, "2026-01-02 to 2026-03-04, 2 commits")
	require.Contains(t, page, "Measured on 2026-01-02, 2 processors, load 0.5 before it, commit abc, took")
	require.Contains(t, page, "Measured on 2026-03-04, 2 processors, load 7.5 before it, commit def, took")
	require.Contains(t, page, "The machine was busy: load 7.5")
	require.Contains(t, pageOf(t, Saved{first, on("2026-01-02", "abc", "0.5")}), "2026-01-02, abc")
}

// TestPageCompares: the head compares each figure with another program's, from files that have no ratios, and the
// table of a paper has our figure beside the paper's number.
func TestPageCompares(t *testing.T) {
	res := result()
	res.Experiment.Name = "sockets"
	res.Rows = append(res.Rows, bench.Row{Experiment: "sockets", Series: "udp-spin", X: 8, XUnit: "B", Y: 1.54, YUnit: "us"})
	page := pageOf(t, Saved{res, machine})
	require.Contains(t, page, "RDMA write of 8 B over sockets, one way<small>0.50× the speed of UDP</small>")
	require.Contains(t, page, "<td>0.9 × is enough</td><td>UD equal up to one MTU</td>")
	require.Less(t, strings.Index(page, "<figure>"), strings.Index(page, `class="claims"`), "a chart comes before the claims")
}

// TestDeciding: the table shows the statement of the paper that decides the mark.
func TestDeciding(t *testing.T) {
	s := section{Saved: Saved{Result: result()}}
	s.Outcomes = []bench.Outcome{
		{Source: bench.Adapter, Word: bench.Refuted, Ours: "ours"}, {Source: "RCUD fig. 8", Word: bench.NotJudged, Ours: "noise"},
		{Source: "RCUD fig. 8", Word: bench.Reproduced, Ours: "good"}, {Source: "RCUD fig. 8", Word: bench.Refuted, Ours: "bad"},
	}
	for n, want := range []string{"", "ours", "noise", "good", "bad"} {
		c := s
		c.Saved.Result = &bench.Result{Experiment: s.Experiment, Outcomes: s.Outcomes[:n]}
		require.Equal(t, want, c.Deciding().Ours)
	}
}

func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "er")
	require.NoError(t, Save(dir, machine, result()))
	lines, err := os.ReadFile(filepath.Join(dir, "verbs-x.jsonl"))
	require.NoError(t, err)
	all := bytes.Split(bytes.TrimSpace(lines), []byte("\n"))
	require.Len(t, all, len(result().Rows)+1)
	var row bench.Row
	require.NoError(t, json.Unmarshal(all[0], &row))
	require.Equal(t, result().Rows[0], row)
	require.JSONEq(t, `{"experiment":"verbs-x","claim":"RC & UD are <even>.","holds":true,"statements":[{"source":"RCUD fig. 8",
		"sentence":"RC & UD are <even>.","paper":"UD equal up to one MTU","outcome":"reproduced","ours":"0.9 × is enough"}]}`, string(all[len(all)-1]))
	text, err := os.ReadFile(filepath.Join(dir, "verbs-x.txt"))
	require.NoError(t, err)
	require.Contains(t, string(text), "go go1.26")
	svg, err := os.ReadFile(filepath.Join(dir, "verbs-x.svg"))
	require.NoError(t, err)
	require.NotEmpty(t, texts(t, svg))

	// What failed before the first figure leaves its error, and no chart, not
	// even an old one.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "verbs-y.svg"), svg, 0o666))
	require.NoError(t, Save(dir, machine, failure()))
	require.NoFileExists(t, filepath.Join(dir, "verbs-y.svg"))
	text, err = os.ReadFile(filepath.Join(dir, "verbs-y.txt"))
	require.NoError(t, err)
	require.Contains(t, string(text), "fell over")

	path, err := SavePage(dir, []Saved{{result(), machine}})
	require.NoError(t, err)
	require.FileExists(t, path)

	require.Error(t, Save(path, machine, result()), "a file is no folder")
}
