package report

import (
	"image/color"
	"slices"
	"strings"
)

// palette tells series apart, also for most who see colours differently (Okabe and Ito's).
var palette = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255},
	{150, 130, 0, 255},
}

// baselineColor is that of the series that others are compared with.
var baselineColor = color.RGBA{110, 110, 110, 255}

// seriesColors returns the colour of each series of the panel. Where there are several transports
// each has a hue, and its series are shades of it; the series of one transport have hues of
// their own.
func (p *panel) seriesColors() map[string]color.RGBA {
	of := map[string]color.RGBA{}
	var transports []string
	members := map[string][]string{}
	subjects := 0
	for _, s := range p.series {
		if slices.Contains(p.baselines, s) {
			of[s] = baselineColor
			if k := slices.Index(p.baselines, s); k > 0 {
				of[s] = shadeColor(baselineColor, k, len(p.baselines))
			}
			continue
		}
		transport, _, _ := strings.Cut(s, "-")
		if !slices.Contains(transports, transport) {
			transports = append(transports, transport)
		}
		members[transport] = append(members[transport], s)
		of[s] = palette[subjects%len(palette)]
		subjects++
	}
	if len(transports) < 2 {
		return of
	}
	for hue, t := range transports {
		for i, s := range members[t] {
			of[s] = shadeColor(palette[hue%len(palette)], i, len(members[t]))
		}
	}
	return of
}

// shadeColor returns the i-th of n shades of a colour, from dark to light; the only one is the
// colour.
func shadeColor(c color.RGBA, i, n int) color.RGBA {
	if n == 1 {
		return c
	}
	const darkest, lightest = -0.35, 0.55
	to := darkest + (lightest-darkest)*float64(i)/float64(n-1)
	mix := func(v uint8) uint8 {
		if to < 0 {
			return uint8(float64(v) * (1 + to))
		}
		return uint8(float64(v) + (255-float64(v))*to)
	}
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 255}
}
