package bench

import (
	"math"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// A Point is a position on an experiment's axes and the unit of the figures there.
type Point struct {
	X     float64
	XUnit string
	YUnit string
}

// A Sample has the figures of one series in the alternating rounds of a point.
type Sample struct {
	Series  string
	Figures []float64      // one for each round, from measure.Alternate
	Stats   *measure.Stats // of single events; nil means the statistics of Figures
}

// EmitAgainst emits one row for baseline and one for each target: the median of the rounds, and
// for targets the median of the pairwise ratios to the baseline. It returns these ratios. A row
// has no ratio if the baseline is 0, as the share of used buffers of TCP may be.
func (r *Run) EmitAgainst(at Point, baseline Sample, targets ...Sample) []float64 {
	r.emitSample(at, baseline, nil)
	ratios := make([]float64, len(targets))
	for i, s := range targets {
		ratios[i] = measure.MedianRatio(s.Figures, baseline.Figures)
		var against *Against
		if !math.IsInf(ratios[i], 0) && !math.IsNaN(ratios[i]) {
			against = &Against{Baseline: baseline.Series, Ratio: ratios[i]}
		}
		r.emitSample(at, s, against)
	}
	return ratios
}

func (r *Run) emitSample(at Point, s Sample, against *Against) {
	stats := s.Stats
	if stats == nil {
		of := measure.Summarize(s.Figures)
		stats = &of
	}
	r.Emit(Row{
		Series: s.Series, X: at.X, XUnit: at.XUnit, Y: measure.Median(s.Figures), YUnit: at.YUnit,
		Stats: stats, Against: against,
	})
}
