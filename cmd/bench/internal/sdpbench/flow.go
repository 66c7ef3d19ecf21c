package sdpbench

import (
	"context"
	"math"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/sdp"
)

// StreamOptions are the options of a stream from rank 0 to rank 1. Size is required.
type StreamOptions struct {
	Size       int  // bytes of each Write
	Greedy     bool // the reader reads any available data up to max(64 KiB, Size) instead of one message
	Buffered   bool // writer and reader use package bufio, with buffers of 64 KiB
	MeasureUse bool // measure the fill level of the buffers
	Compute    Work // work of the reader for each KiB read
}

// A Flow is the traffic of one round.
type Flow struct {
	Bytes   int64
	Elapsed time.Duration

	// Of SDP: data messages, and bytes transferred without a copy.
	Messages, ZeroCopy int64

	// Average fill level of the writer's and the reader's buffer, from 0 to 1, if Config sets
	// their size.
	SendUse, ReceiveUse float64
}

// MBps returns the payload rate in MB/s.
func (f Flow) MBps() float64 { return measure.MBps(f.Bytes, f.Elapsed) }

// BufferUse returns the fill level of the fuller of the two buffers, in percent.
func (f Flow) BufferUse() float64 { return 100 * max(f.SendUse, f.ReceiveUse) }

// ZeroCopyPercent returns the share of the bytes transferred without a copy.
func (f Flow) ZeroCopyPercent() float64 { return 100 * float64(f.ZeroCopy) / float64(max(f.Bytes, 1)) }

// Stream streams the given number of messages.
func (p *Pair) Stream(ctx context.Context, o StreamOptions, messages int) (Flow, error) {
	ends, err := p.callBoth(ctx, request{Stream: &streamRound{o, messages}})
	if err != nil {
		return Flow{}, err
	}
	f := *ends[0].Flow
	f.ReceiveUse = ends[1].Flow.ReceiveUse
	return f, nil
}

// A Streamer streams for about a given time and adapts the number of messages.
type Streamer struct {
	pair     *Pair
	o        StreamOptions
	time     time.Duration
	messages int
	warm     bool
}

// NewStreamer returns a Streamer with rounds of about length d.
func (p *Pair) NewStreamer(o StreamOptions, d time.Duration) *Streamer {
	return &Streamer{pair: p, o: o, time: d, messages: 16}
}

// Round streams once. The first call also calibrates the number of messages.
func (s *Streamer) Round(ctx context.Context) (Flow, error) {
	for {
		f, err := s.pair.Stream(ctx, s.o, s.messages)
		if err != nil {
			return f, err
		}
		enough := f.Elapsed >= s.time/2
		s.messages = nextCount(s.messages, f.Elapsed, s.time)
		if enough && s.warm {
			return f, nil
		}
		s.warm = s.warm || enough
	}
}

// Rounds returns Round for measure.Alternate, with Flow.MBps or Flow.BufferUse as the figure.
func (s *Streamer) Rounds(figure func(Flow) float64) measure.Round {
	return func(ctx context.Context) (float64, error) {
		f, err := s.Round(ctx)
		return figure(f), err
	}
}

// nextCount returns the number of messages for a round of length want if n messages took took.
// It grows at most 16-fold, because a short round is inaccurate.
func nextCount(n int, took, want time.Duration) int {
	factor := min(16, float64(want)/float64(max(took, 1)))
	return max(1, min(int(math.Ceil(float64(n)*factor)), math.MaxInt32))
}

// usage is the average fill level of the two buffers of a side, from 0 to 1.
type usage struct{ send, receive float64 }

// A gauge starts to measure the usage of a side's buffers. The returned function ends the
// measurement.
type gauge func() (end func() usage)

// startUsage starts the gauge of the side, if there is one and wanted is true.
func (e *side) startUsage(wanted bool) (end func() usage) {
	if !wanted || e.gauge == nil {
		return func() usage { return usage{} }
	}
	return e.gauge()
}

// sdpGauge returns the gauge of an SDP connection, which measures exactly.
func sdpGauge(c *sdp.Conn) gauge {
	return func() func() usage {
		stop, size := c.MeasureBufferUse(), float64(c.Stats().BufferSize)
		return func() usage {
			u := stop()
			return usage{u.Send / size, u.Receive / size}
		}
	}
}
