package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// TestPaperPoints: the paper's number is drawn as a ratio to the series measured here.
func TestPaperPoints(t *testing.T) {
	row := func(series string, x, y float64) Row {
		return Row{Series: series, X: x, XUnit: measure.Bytes, Y: y, YUnit: measure.MegabytesPerSec}
	}
	rows := []Row{row("rc", 8, 10), row("rc", 64, 40), row("tcp", 8, 4), row("tcp", 64, 80), row("rc", 512, 9)}
	ratio := Ratio{Of: []string{"rc"}, Over: []string{"tcp", "absent"}, Unit: measure.MegabytesPerSec, At: Everywhere(measure.Bytes), Limit: AtLeast(2)}
	peak := ratio
	peak.Peak = true
	point := func(over string, x, y, paper, ours float64) PaperPoint {
		return PaperPoint{Series: "rc", Over: over, X: x, XUnit: measure.Bytes, Y: y, YUnit: measure.MegabytesPerSec, Paper: paper, Ours: ours}
	}
	for name, c := range map[string]struct {
		compare Comparison
		want    []PaperPoint
	}{
		"each":  {ratio, []PaperPoint{point("tcp", 8, 12, 3, 2.5), point("tcp", 64, 240, 3, 0.5)}},
		"peak":  {peak, []PaperPoint{point("tcp", 64, 240, 3, 0.5)}},
		"value": {All{Value{Of: []string{"rc"}, Unit: measure.MegabytesPerSec, At: At(64, measure.Bytes), Limit: AtLeast(1)}}, []PaperPoint{point("", 64, 3, 3, 40)}},
		"flat":  {Flat{Of: []string{"rc"}, Unit: measure.MegabytesPerSec, At: Everywhere(measure.Bytes), Limit: AtMost(1)}, nil},
	} {
		e := &Experiment{Claims: []Statement{{Compare: c.compare, Number: 3}, {Compare: c.compare, Number: 3}, {Compare: c.compare}}}
		require.Equal(t, c.want, e.PaperPoints(rows), name)
	}
}
