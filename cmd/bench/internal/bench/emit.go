package bench

import (
	"math"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// A Point is a place on an experiment's axes and what is measured there.
type Point struct {
	X     float64
	XUnit string
	YUnit string
}

// A Sample is what the alternating rounds of one series measured at a point.
type Sample struct {
	Series  string
	Figures []float64      // one a round, as measure.Alternate returns them
	Stats   *measure.Stats // of single events, where there are any; nil: of the rounds
}

// EmitAgainst emits a row for baseline and for each subject: the median of the
// rounds, and for the subjects the median of the pairwise ratios to the
// baseline. It returns these ratios. One to a baseline that was 0 says nothing, and
// is not emitted: TCP may use none of its buffers.
func (r *Run) EmitAgainst(at Point, baseline Sample, subjects ...Sample) []float64 {
	r.emitSample(at, baseline, nil)
	ratios := make([]float64, len(subjects))
	for i, s := range subjects {
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
