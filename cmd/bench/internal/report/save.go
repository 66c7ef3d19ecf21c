package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/env"
)

// WriteJSON writes a result in the format of `--json`: a line for each row, followed by the
// verdict unless the experiment failed.
func WriteJSON(w io.Writer, res *bench.Result) error {
	enc := json.NewEncoder(w)
	for _, r := range res.Rows {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	if res.Err != nil {
		return nil
	}
	return WriteVerdict(w, res)
}

// WriteVerdict writes the last line of `--json`.
func WriteVerdict(w io.Writer, res *bench.Result) error {
	return json.NewEncoder(w).Encode(bench.VerdictLine{
		Experiment: res.Experiment.Name,
		Claim:      res.Experiment.Claim(),
		Holds:      bench.Verdict(res.Outcomes) == bench.Holds,
		Statements: res.Outcomes,
	})
}

// CheckDir creates dir if needed and returns an error if it is not writable. Callers check
// before they measure for hours.
func CheckDir(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".bench-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Save writes NAME.jsonl, NAME.csv, NAME.txt, NAME.svg, and NAME.json with the metadata of the
// run into dir. It creates dir if needed.
func Save(dir string, machine env.Fingerprint, res *bench.Result) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var lines, table bytes.Buffer
	if err := errors.Join(WriteJSON(&lines, res), WriteCSV(&table, res.Rows)); err != nil {
		return err
	}
	svg, err := SVG(res)
	if err != nil {
		return err
	}
	how, err := json.MarshalIndent(newRecord(machine, res), "", "  ")
	if err != nil {
		return err
	}
	for ext, data := range map[string][]byte{
		"json":  append(how, '\n'),
		"jsonl": lines.Bytes(),
		"csv":   table.Bytes(),
		"txt":   []byte(machine.String() + "\n\n" + Text(res)),
		"svg":   svg,
	} {
		path := filepath.Join(dir, res.Experiment.Name+"."+ext)
		if len(data) == 0 {
			_ = os.Remove(path) // left by an earlier run
			continue
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// SaveFigures writes NAME.jsonl with the figures, without the statistics of single events, and
// NAME.json, from which LoadFS restores the result, into dir.
func SaveFigures(dir string, s Saved) error {
	res := *s.Result
	res.Rows, res.Outcomes = nil, nil
	for _, r := range s.Rows {
		r.Stats, r.Against = nil, nil
		r.Y, r.Rounds = roundFigure(r.Y), slices.Clone(r.Rounds)
		for i := range r.Rounds {
			r.Rounds[i] = roundFigure(r.Rounds[i])
		}
		res.Rows = append(res.Rows, r)
	}
	var lines bytes.Buffer
	how, err := json.MarshalIndent(newRecord(s.Machine, &res), "", "  ")
	if err := errors.Join(err, WriteJSON(&lines, &res)); err != nil {
		return err
	}
	path := filepath.Join(dir, res.Experiment.Name)
	return errors.Join(replaceFile(path+".json", append(how, '\n')), replaceFile(path+".jsonl", lines.Bytes()))
}

// roundFigure rounds v to five digits.
func roundFigure(v float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64) // of its own output
	return rounded
}

// pageName is the base name of the page's files. No experiment may have this name.
const pageName = "report"

// SavePage writes report.html into dir and returns its path. It writes the rows of all results
// into report.jsonl and report.csv. Each file is replaced atomically.
func SavePage(dir string, results []Saved) (path string, err error) {
	var page bytes.Buffer
	if err := Page(&page, results); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	path = filepath.Join(dir, pageName)
	var lines, table bytes.Buffer
	var rows []bench.Row
	for _, res := range results {
		rows = append(rows, res.Rows...)
		if err := WriteJSON(&lines, res.Result); err != nil {
			return "", err
		}
	}
	err = errors.Join(WriteCSV(&table, rows), replaceFile(path+".jsonl", lines.Bytes()), replaceFile(path+".csv", table.Bytes()))
	return path + ".html", errors.Join(err, replaceFile(path+".html", page.Bytes()))
}

// replaceFile replaces the content of a file atomically.
func replaceFile(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o666); err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	return os.Rename(path+".new", path)
}

// csvHeader has the column names, which are the members of a row's JSON object.
var csvHeader = []string{"experiment", "series", "x", "x_unit", "y", "y_unit", "n", "p50", "p99", "min", "max", "baseline", "ratio"}

// WriteCSV writes rows as comma-separated values (RFC 4180), with the column names in the first
// line. Missing values are empty. Without rows it writes nothing.
func WriteCSV(w io.Writer, rows []bench.Row) error {
	if len(rows) == 0 {
		return nil
	}
	c := csv.NewWriter(w)
	lines := [][]string{csvHeader}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, r := range rows {
		if r.Absent != "" {
			continue
		}
		line := make([]string, len(csvHeader))
		copy(line, []string{r.Experiment, r.Series, number(r.X), r.XUnit, number(r.Y), r.YUnit})
		if r.Stats != nil {
			copy(line[6:], []string{strconv.FormatInt(r.N, 10), number(r.P50), number(r.P99), number(r.Min), number(r.Max)})
		}
		if r.Against != nil {
			copy(line[11:], []string{r.Baseline, number(r.Ratio)})
		}
		lines = append(lines, line)
	}
	return c.WriteAll(lines)
}
