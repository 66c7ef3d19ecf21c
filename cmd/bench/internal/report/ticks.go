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

// logTicks are the ticks of a logarithmic axis: with labels at powers of ten, and at 2 and 5 times these if the
// axis has fewer than three.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(from, to float64) (ticks []plot.Tick) {
	few := math.Log10(to/from) < 3
	for power := math.Floor(math.Log10(from)); power <= math.Log10(to); power++ {
		for digit := 1.0; digit < 10; digit++ {
			tick := plot.Tick{Value: digit * math.Pow(10, power)}
			if digit == 1 || few && (digit == 2 || digit == 5) {
				tick.Label = formatTick(tick.Value)
			}
			if tick.Value >= from && tick.Value <= to {
				ticks = append(ticks, tick)
			}
		}
	}
	return ticks
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
