package report

import (
	"image/color"
	"slices"
	"strings"
)

// palette has distinct colours, also for most colour-blind readers (Okabe and Ito's palette).
var palette = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255},
	{150, 130, 0, 255},
}

// baselineColor is the colour of baseline series.
var baselineColor = color.RGBA{110, 110, 110, 255}

// seriesColors returns the colour of each series of the panel. If there are several transports,
// each transport has a hue and its series are shades of it. The series of a single transport
// have different hues.
func (p *panel) seriesColors() map[string]color.RGBA {
	colors := map[string]color.RGBA{}
	var transports []string
	members := map[string][]string{}
	targets := 0
	for _, s := range p.series {
		if slices.Contains(p.baselines, s) {
			colors[s] = baselineColor
			if k := slices.Index(p.baselines, s); k > 0 {
				colors[s] = shadeColor(baselineColor, k, len(p.baselines))
			}
			continue
		}
		transport, _, _ := strings.Cut(s, "-")
		if !slices.Contains(transports, transport) {
			transports = append(transports, transport)
		}
		members[transport] = append(members[transport], s)
		colors[s] = palette[targets%len(palette)]
		targets++
	}
	if len(transports) < 2 {
		return colors
	}
	for hue, t := range transports {
		for i, s := range members[t] {
			colors[s] = shadeColor(palette[hue%len(palette)], i, len(members[t]))
		}
	}
	return colors
}

// shadeColor returns the i-th of n shades of c, from dark to light, or c itself if n is 1.
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
