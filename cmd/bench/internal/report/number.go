package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// formatNumber formats v with about three significant digits.
func formatNumber(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', 2, 64) + "M"
	case a >= 100 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

// formatX formats an x value with its unit. Sizes have binary prefixes, and the unit of a
// single item is singular.
func formatX(x float64, unit string) string {
	if unit == measure.Bytes && x == math.Trunc(x) {
		for _, p := range []struct {
			name string
			size float64
		}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
			if x >= p.size && math.Mod(x, p.size) == 0 {
				return strconv.FormatFloat(x/p.size, 'f', -1, 64) + " " + p.name
			}
		}
	}
	if x == 1 && len(unit) > len("us") { // not a unit of time
		unit = strings.TrimSuffix(unit, "s")
	}
	return strconv.FormatFloat(x, 'g', -1, 64) + " " + unit
}

// formatRatio formats a ratio with two decimals, or with two significant digits below 0.1.
func formatRatio(r float64) string {
	if r < 0.1 {
		return strconv.FormatFloat(r, 'g', 2, 64) + "×"
	}
	return strconv.FormatFloat(r, 'f', 2, 64) + "×"
}
