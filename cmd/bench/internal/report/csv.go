package report

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

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
