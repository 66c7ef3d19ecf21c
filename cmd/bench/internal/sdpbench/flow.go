package sdpbench

import (
	"context"
	"math"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/sdp"
)

// StreamOptions say what flows from rank 0 to rank 1. Size is required.
type StreamOptions struct {
	Size       int  // bytes of each Write
	Greedy     bool // the reader takes what is there, up to 64 KiB or one message, instead of one message at a time
	MeasureUse bool // measure how full the buffers are
	Compute    Work // of the reader, for each KiB that it has read
}

// A Flow is what one round moved.
type Flow struct {
	Bytes   int64
	Elapsed time.Duration

	// Of SDP: messages that carried it, and the bytes that went without a copy.
	Messages, ZeroCopy int64

	// How full the writer's and the reader's buffer were on average, of 1, if
	// Config gives them a size.
	SendUse, ReceiveUse float64
}

// MBps is the payload rate in MB/s.
func (f Flow) MBps() float64 { return measure.MBps(f.Bytes, f.Elapsed) }

// BufferUse is how full the fuller of both buffers was, in percent.
func (f Flow) BufferUse() float64 { return 100 * max(f.SendUse, f.ReceiveUse) }

// ZeroCopyPercent is how much of the bytes went without a copy.
func (f Flow) ZeroCopyPercent() float64 { return 100 * float64(f.ZeroCopy) / float64(max(f.Bytes, 1)) }

// Stream moves so many messages.
func (p *Pair) Stream(ctx context.Context, o StreamOptions, messages int) (Flow, error) {
	ends, err := p.callBoth(ctx, request{Stream: &streamRound{o, messages}})
	if err != nil {
		return Flow{}, err
	}
	f := *ends[0].Flow
	f.ReceiveUse = ends[1].Flow.ReceiveUse
	return f, nil
}

// A Streamer streams for about a time, and knows how many messages that takes.
type Streamer struct {
	pair     *Pair
	o        StreamOptions
	time     time.Duration
	messages int
	warm     bool
}

// NewStreamer makes rounds of about length d.
func (p *Pair) NewStreamer(o StreamOptions, d time.Duration) *Streamer {
	return &Streamer{pair: p, o: o, time: d, messages: 16}
}

// Round streams once. The first call also finds out how long a round should be.
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

// Rounds is Round as measure.Alternate takes it, with the figure of interest:
// Flow.MBps or Flow.BufferUse.
func (s *Streamer) Rounds(figure func(Flow) float64) measure.Round {
	return func(ctx context.Context) (float64, error) {
		f, err := s.Round(ctx)
		return figure(f), err
	}
}

// nextCount is how many messages the next round should have if n took so long:
// at most 16 times as many, for a short round says little.
func nextCount(n int, took, want time.Duration) int {
	factor := min(16, float64(want)/float64(max(took, 1)))
	return max(1, min(int(math.Ceil(float64(n)*factor)), math.MaxInt32))
}

// A usage is how full the two buffers of an end were on average, of 1.
type usage struct{ send, receive float64 }

// A gauge begins to measure how full the buffers of an end are; what it returns ends
// that.
type gauge func() (end func() usage)

// startUsage asks the end's gauge, if there is one and somebody wants to know.
func (e *side) startUsage(wanted bool) (end func() usage) {
	if !wanted || e.gauge == nil {
		return func() usage { return usage{} }
	}
	return e.gauge()
}

// sdpGauge is that of a connection by SDP, which knows exactly.
func sdpGauge(c *sdp.Conn) gauge {
	return func() func() usage {
		stop, size := c.MeasureUse(), float64(c.Stats().BufferSize)
		return func() usage {
			u := stop()
			return usage{u.Send / size, u.Receive / size}
		}
	}
}
