package bench

import "slices"

// A PaperPoint is the figure that a series would have if a number of the paper held here: the
// number of a statement, as a ratio to the series measured here.
type PaperPoint struct {
	Series      string // that the statement is about
	Over        string // series that the number is a ratio to; "" for a figure itself
	X           float64
	XUnit       string
	Y           float64
	YUnit       string
	Paper, Ours float64 // number of the paper, and the same here
}

// PaperPoints returns the points of the statements of e that have a number, where rows have the
// figures and the comparator has no noise. Statements without a number, and those about growth,
// have none.
func (e *Experiment) PaperPoints(rows []Row) (points []PaperPoint) {
	for _, s := range e.Claims {
		if s.Number == 0 {
			continue
		}
		for _, p := range paperPoints(figures(rows), s.Compare) {
			p.Paper = s.Number
			if p.Over == "" {
				p.Y = s.Number
			} else {
				p.Y *= s.Number
			}
			if !slices.Contains(points, p) {
				points = append(points, p)
			}
		}
	}
	return points
}

// paperPoints returns the points of a comparison, with the figures of Over as Y.
func paperPoints(f figures, c Comparison) (points []PaperPoint) {
	switch c := c.(type) {
	case Value:
		for _, of := range c.Of {
			if rows := f.rowsAt(of, c.Unit, c.At); len(rows) > 0 && c.Minus == "" {
				r := slices.MaxFunc(rows, byFigure) // a number is that of the peak
				points = append(points, PaperPoint{Series: of, X: r.X, XUnit: r.XUnit, YUnit: r.YUnit, Ours: r.Y})
			}
		}
	case Ratio:
		for _, of := range c.Of {
			for _, over := range c.Over {
				points = append(points, c.paperPoints(f, of, over)...)
			}
		}
	case All:
		for _, one := range c {
			points = append(points, paperPoints(f, one)...)
		}
	}
	return points
}

// paperPoints returns the points of one pair of series. That of peaks is where of has its peak.
func (c Ratio) paperPoints(f figures, of, over string) (points []PaperPoint) {
	rows, bases := f.rowsAt(of, c.Unit, c.At), f.rowsAt(over, c.Unit, c.At)
	if c.Peak && len(rows) > 0 && len(bases) > 0 {
		rows, bases = []Row{slices.MaxFunc(rows, byFigure)}, []Row{slices.MaxFunc(bases, byFigure)}
	}
	for _, r := range rows {
		i := slices.IndexFunc(bases, func(b Row) bool { return c.Peak || b.X == r.X && b.XUnit == r.XUnit })
		if i < 0 {
			continue
		}
		ratio, ok := rowRatio(r, bases[i])
		if c.Peak {
			ratio = r.Y / bases[i].Y
		}
		if ok && bases[i].Y > 0 && f.noiseOf(bases[i]) == "" {
			points = append(points, PaperPoint{Series: of, Over: over, X: r.X, XUnit: r.XUnit, Y: bases[i].Y, YUnit: r.YUnit, Ours: ratio})
		}
	}
	return points
}
