package report

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"io"
	"time"

	"github.com/softrnic/softrnic/internal/bench"
	"github.com/softrnic/softrnic/internal/bench/env"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number,
	"place":  place,
	"ratio":  ratio,
}).Parse(pageHTML))

// section is one experiment on the page.
type section struct {
	*bench.Result
	Chart template.HTML
	State string // holds, differs or failed; also the class of its mark
}

// Page writes one HTML page with all results. Charts and styles are in it, so
// that it can be viewed without a network and sent as one file.
func Page(w io.Writer, machine env.Fingerprint, results []*bench.Result) error {
	sections := make([]section, len(results))
	for i, res := range results {
		svg, err := SVG(res.Rows)
		if err != nil {
			return err
		}
		sections[i] = section{res, inline(svg), state(res)}
	}
	return pageTemplate.Execute(w, struct {
		Machine   env.Fingerprint
		Sections  []section
		RatioNote string
	}{machine, sections, RatioNote})
}

// ErrNotRun is the error of a result that is still to come, or never came.
var ErrNotRun = errors.New("not run")

func state(res *bench.Result) string {
	switch {
	case errors.Is(res.Err, ErrNotRun):
		return "not run"
	case res.Err != nil:
		return "failed"
	case res.Verdict.Holds:
		return "holds"
	default:
		return "differs"
	}
}

// inline strips what belongs to a document of its own. The SVG is drawn by this
// package, which escapes all text in it.
func inline(svg []byte) template.HTML {
	if i := bytes.Index(svg, []byte("<svg")); i > 0 {
		svg = svg[i:]
	}
	return template.HTML(svg)
}

// Seconds is how long the experiment took.
func (s section) Seconds() string { return s.Elapsed.Round(100 * time.Millisecond).String() }
