package report

import (
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

// A group is the rows of one experiment that have the same units, and therefore share a table
// and charts.
type group struct {
	xUnit, yUnit string
	xs           []float64 // in ascending order
	series       []string  // in the order of their first row
	rows         map[cell]bench.Row
}

type cell struct {
	series string
	x      float64
}

// groupRows groups rows by their units, in the order of the first row of each group.
func groupRows(rows []bench.Row) []*group {
	var all []*group
	for _, r := range rows {
		i := slices.IndexFunc(all, func(g *group) bool { return g.xUnit == r.XUnit && g.yUnit == r.YUnit })
		if i < 0 {
			i = len(all)
			all = append(all, &group{xUnit: r.XUnit, yUnit: r.YUnit, rows: map[cell]bench.Row{}})
		}
		g := all[i]
		if !slices.Contains(g.series, r.Series) {
			g.series = append(g.series, r.Series)
		}
		if at, found := slices.BinarySearch(g.xs, r.X); !found {
			g.xs = slices.Insert(g.xs, at, r.X)
		}
		g.rows[cell{r.Series, r.X}] = r
	}
	return all
}

// findRow returns the row of a series at x, or false if there is none.
func (g *group) findRow(series string, x float64) (bench.Row, bool) {
	r, ok := g.rows[cell{series, x}]
	return r, ok
}
