package report

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// shortTicks are ticks with short labels: "2.5M" instead of "2500000.00".
type shortTicks struct{ plot.Ticker }

// Ticks implements plot.Ticker.
func (t shortTicks) Ticks(from, to float64) []plot.Tick {
	ticks := t.Ticker.Ticks(from, to)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = formatTick(ticks[i].Value)
		}
	}
	return ticks
}

// formatTick formats a label in few characters.
func formatTick(v float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if math.Abs(v) >= unit.size {
			return strconv.FormatFloat(v/unit.size, 'g', 4, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// sparseTicks returns a tick for each x, and labels as many as fit.
func (p *panel) sparseTicks() plot.ConstantTicks {
	const maxLabels = 9
	every := (len(p.xs) + maxLabels - 1) / maxLabels
	ticks := make(plot.ConstantTicks, len(p.xs))
	for i, x := range p.xs {
		ticks[i].Value = x
		if i%every == 0 {
			ticks[i].Label = strings.ReplaceAll(measure.FormatAt(x, p.xUnit), " "+p.xUnit, "")
		}
	}
	return ticks
}
