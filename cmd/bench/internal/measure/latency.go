package measure

import (
	"context"
	"encoding/json"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Range and precision of the histogram: 1 ns to 1 min, 3 significant digits. Values outside of
// the range are clamped.
const (
	latencyMin    = 1
	latencyMax    = int64(time.Minute)
	latencyDigits = 3
)

// Latency is a histogram of durations. It marshals to JSON, so that a worker can send it to the
// process that merges and prints. It is not safe for concurrent use.
type Latency struct{ h *hdr.Histogram }

// NewLatency returns an empty histogram.
func NewLatency() *Latency {
	return &Latency{hdr.New(latencyMin, latencyMax, latencyDigits)}
}

// Record adds one duration. It does not allocate.
func (l *Latency) Record(d time.Duration) {
	// RecordValue fails only for values out of range.
	_ = l.h.RecordValue(min(max(int64(d), latencyMin), latencyMax))
}

// Merge adds all durations recorded in other.
func (l *Latency) Merge(other *Latency) { l.h.Merge(other.h) }

// Median returns the 50th percentile in microseconds, or 0 if l is empty.
func (l *Latency) Median() float64 { return l.Stats().P50 }

// Mean returns the average in microseconds, or 0 if l is empty.
func (l *Latency) Mean() float64 { return l.h.Mean() / 1e3 }

// MedianRounds returns rounds whose figure is the median of the times that round returns, in
// microseconds. All times are added to into, unless it is nil.
func MedianRounds(into *Latency, round func(context.Context) (*Latency, error)) Round {
	return func(ctx context.Context) (float64, error) {
		l, err := round(ctx)
		if err != nil {
			return 0, err
		}
		if into != nil {
			into.Merge(l)
		}
		return l.Median(), nil
	}
}

// Stats returns the statistics of the histogram in microseconds.
func (l *Latency) Stats() Stats {
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	return Stats{
		N:   l.h.TotalCount(),
		P50: us(l.h.ValueAtPercentile(50)),
		P99: us(l.h.ValueAtPercentile(99)),
		Min: us(l.h.Min()),
		Max: us(l.h.Max()),
	}
}

// MarshalJSON writes the histogram in HdrHistogram's compressed encoding.
func (l *Latency) MarshalJSON() ([]byte, error) {
	b, err := l.h.EncodeV2()
	if err != nil {
		return nil, err
	}
	return json.Marshal(string(b))
}

// UnmarshalJSON decodes the encoding of MarshalJSON.
func (l *Latency) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	h, err := hdr.Decode([]byte(s))
	if err != nil {
		return err
	}
	l.h = h
	return nil
}
