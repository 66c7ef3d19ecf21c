package pingpong

import (
	"fmt"
	"io"
	"time"
)

// Gaps are the times between the completions of successive receives.
type Gaps struct {
	Min, Max, Average time.Duration
}

// gapStats collects the times between completions.
type gapStats struct {
	last     int64 // time of the last completion in nanoseconds, 0 before the first
	min, max int64
	sum      int64
	count    int64
}

// addCompletion adds a completion at a time in nanoseconds; 0 is unknown.
func (s *gapStats) addCompletion(at int64) {
	if at == 0 {
		return
	}
	if s.last != 0 {
		gap := at - s.last
		if s.count == 0 || gap < s.min {
			s.min = gap
		}
		s.max = max(s.max, gap)
		s.sum += gap
		s.count++
	}
	s.last = at
}

// gaps returns the result, or nil without a gap.
func (s *gapStats) gaps() *Gaps {
	if s.count == 0 {
		return nil
	}
	return &Gaps{Min: time.Duration(s.min), Max: time.Duration(s.max), Average: time.Duration(s.sum / s.count)}
}

// writeReport writes the original's lines. A clock cycle of the device is a nanosecond.
func (g *Gaps) writeReport(w io.Writer) {
	fmt.Fprintf(w, "Max receive completion clock cycles = %d\n", g.Max.Nanoseconds())
	fmt.Fprintf(w, "Min receive completion clock cycles = %d\n", g.Min.Nanoseconds())
	fmt.Fprintf(w, "Average receive completion clock cycles = %f\n", float64(g.Average.Nanoseconds()))
}
