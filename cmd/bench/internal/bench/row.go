package bench

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// A Row is one figure, and one line of --json.
type Row struct {
	Experiment string  `json:"experiment"` // set by Run.Emit
	Series     string  `json:"series"`
	X          float64 `json:"x"`
	XUnit      string  `json:"x_unit"`
	Y          float64 `json:"y"`
	YUnit      string  `json:"y_unit"`

	Rounds []float64 `json:"rounds,omitempty"` // figures of the alternating rounds; Y is their median
	Absent string    `json:"absent,omitempty"` // reason for which the series could not be measured; such a row has no figure

	*measure.Stats // n, p50, p99, min, max in YUnit, if the figure summarizes a sample
	*Against       // baseline and ratio, if there is a baseline
}

// Against compares a row with a baseline measured in the same run.
type Against struct {
	Baseline string  `json:"baseline"` // a series of the same experiment, at the same X
	Ratio    float64 `json:"ratio"`    // this series over the baseline
}

// MarshalJSON omits the figures of a row that has none.
func (r Row) MarshalJSON() ([]byte, error) {
	if r.Absent != "" {
		return json.Marshal(struct {
			Experiment string `json:"experiment"`
			Series     string `json:"series"`
			Absent     string `json:"absent"`
		}{r.Experiment, r.Series, r.Absent})
	}
	type plain Row
	return json.Marshal(plain(r))
}

// checkFigures returns an error if r lacks a series or unit, or has a figure that is NaN or
// infinite.
func (r Row) checkFigures() error {
	if r.Absent != "" && r.Series != "" {
		return nil
	}
	if r.Series == "" || r.XUnit == "" || r.YUnit == "" {
		return fmt.Errorf("bench: row %+v: missing series or unit", r)
	}
	figures := append([]float64{r.X, r.Y}, r.Rounds...)
	if r.Stats != nil {
		figures = append(figures, r.P50, r.P99, r.Min, r.Max)
	}
	if r.Against != nil {
		figures = append(figures, r.Ratio)
	}
	for _, f := range figures {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("bench: series %q at %v %s: figure is NaN or infinite", r.Series, r.X, r.XUnit)
		}
	}
	return nil
}

// A VerdictLine is the last line of an experiment in --json.
type VerdictLine struct {
	Experiment string    `json:"experiment"`
	Claim      string    `json:"claim"`
	Holds      bool      `json:"holds"` // no statement is refuted, and at least one holds
	Statements []Outcome `json:"statements"`
}

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
		Rounds: s.Figures, Stats: stats, Against: against,
	})
}

// EmitAbsent adds a row without a figure, with the reason for which a series cannot be measured,
// once for each series.
func (r *Run) EmitAbsent(series, format string, args ...any) {
	if figures(r.rows).absenceOf(series) == "" {
		r.Emit(Row{Series: series, Absent: fmt.Sprintf(format, args...)})
	}
}
