package verbsbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/verbs"
)

// Config says how both devices of a pair are opened and connected.
type Config struct {
	MTU        int    // path MTU in bytes; 0: 4096
	RecvBuffer int    // of the socket, as rnic.Options has it: 0 asks for much, -1 leaves the system's default
	Impair     string // faults on both links, as rnic.Options has them

	// Spin is how long a blocked waiter looks before it sleeps. 0 is not at
	// all: that is what series of events are about.
	Spin time.Duration

	// The model of a cache of queue pair contexts, as rnic.ICM has it.
	ICMEntries     int
	ICMMissPenalty time.Duration
}

// A Pair is two processes with a device each, that wait until a subject is
// asked for a round. For one goroutine.
type Pair struct {
	g    *proc.Group
	next int
}

// OpenPair starts the two processes. The caller closes the pair, and with it
// every subject.
func OpenPair(ctx context.Context, c Config) (*Pair, error) {
	if c.MTU == 0 {
		c.MTU = 4096
	}
	end := proc.Spec{Name: worker, Role: roleSide, Args: c}
	g, err := proc.Start(ctx, proc.Options{Pin: true}, end, end)
	if err != nil {
		return nil, err
	}
	return &Pair{g: g}, nil
}

// Close ends both processes. Closing twice is safe.
func (p *Pair) Close() { p.g.Close() }

// targetHandle is the parent's handle of one subject on both ends.
type targetHandle struct {
	pair *Pair
	id   int
}

// openTarget opens a subject on both ends, which answer in rank order.
func (p *Pair) openTarget(ctx context.Context, r request) (targetHandle, []reply, error) {
	p.next++
	r.Target = p.next
	ends, err := proc.Call[request, reply](ctx, p.g, r)
	return targetHandle{p, r.Target}, ends, err
}

// Close frees what the subject holds on both ends.
func (s targetHandle) Close(ctx context.Context) error {
	_, err := proc.Call[request, reply](ctx, s.pair.g, request{Target: s.id, Close: true})
	return err
}

// PingOptions say what goes to and fro. Op and Size are required.
type PingOptions struct {
	Op    Op
	Size  int  // bytes of payload; 8 for RCAtomic
	Event bool // both ends block until a completion comes, instead of polling
	QPs   int  // RCWrite: queue pairs that take turns; 0: 1
}

// A PingPong sends one message to and fro.
type PingPong struct{ targetHandle }

// OpenPingPong opens a ping-pong on the pair.
func (p *Pair) OpenPingPong(ctx context.Context, o PingOptions) (*PingPong, error) {
	s, _, err := p.openTarget(ctx, request{Ping: &o})
	if err != nil {
		return nil, err
	}
	return &PingPong{s}, nil
}

// Round does iters round trips and returns half of each one's time, or the
// whole for reads and atomics.
func (p *PingPong) Round(ctx context.Context, iters int) (*measure.Latency, error) {
	ends, err := proc.Call[request, reply](ctx, p.pair.g, request{Target: p.id, Iters: iters})
	if err != nil {
		return nil, err
	}
	return ends[0].Latency, nil
}

// LatencyRounds is Round as measure.Alternate takes it; the figure is the median in
// microseconds. All that is measured is added to into, unless that is nil.
func (p *PingPong) LatencyRounds(iters int, into *measure.Latency) measure.Round {
	return medianRound(p.Round, iters, into)
}

// medianRound makes a round of single events one of its median in microseconds.
func medianRound(round func(context.Context, int) (*measure.Latency, error), iters int, into *measure.Latency) measure.Round {
	return func(ctx context.Context) (float64, error) {
		l, err := round(ctx, iters)
		if err != nil {
			return 0, err
		}
		if into != nil {
			into.Merge(l)
		}
		return l.Median(), nil
	}
}

// StreamOptions say what flows from rank 0 to rank 1, or, for RCRead, the
// other way. Op and Size are required.
type StreamOptions struct {
	Op    Op
	Size  int // bytes of one message
	List  int // requests posted at once; 0: 1
	Depth int // requests outstanding at most; 0: 128, and less for long messages
}

// A Flow is what one round moved.
type Flow struct {
	Messages int64 // that arrived whole
	Bytes    int64 // of payload in them
	Sent     int64 // requests: messages, or pieces of long UD messages
	Lost     int64 // of them (UC, UD), because nobody acknowledges and repeats them
	Elapsed  time.Duration
	Failure  string // the queue pair failed, and how: the stream is of no further use
}

// MBps is the payload rate in MB/s.
func (f Flow) MBps() float64 { return measure.MBps(f.Bytes, f.Elapsed) }

// MessagesPerSecond is the message rate.
func (f Flow) MessagesPerSecond() float64 { return measure.PerSecond(f.Messages, f.Elapsed) }

// A Stream moves messages one way as fast as they go.
type Stream struct {
	targetHandle
	sent, lost int64
}

// LostPercent is how much of what was sent in all rounds got lost.
func (s *Stream) LostPercent() float64 {
	return 100 * float64(s.lost) / float64(max(s.sent, 1))
}

// OpenStream opens a stream on the pair.
func (p *Pair) OpenStream(ctx context.Context, o StreamOptions) (*Stream, error) {
	s, _, err := p.openTarget(ctx, request{Stream: &o})
	if err != nil {
		return nil, err
	}
	return &Stream{targetHandle: s}, nil
}

// Round moves messages for d.
func (s *Stream) Round(ctx context.Context, d time.Duration) (Flow, error) {
	ends, err := proc.Call[request, reply](ctx, s.pair.g, request{Target: s.id, For: d})
	if err != nil {
		return Flow{}, err
	}
	f := *ends[0].Flow
	s.sent += f.Sent
	s.lost += f.Lost
	return f, nil
}

// ErrQPFailed says that a stream's queue pair gave up.
var ErrQPFailed = errors.New("verbsbench: a queue pair failed")

// Rounds is Round as measure.Alternate takes it, with the figure of interest:
// Flow.MBps or Flow.MessagesPerSecond. It returns ErrFailed if the queue pair
// gives up.
func (s *Stream) Rounds(d time.Duration, figure func(Flow) float64) measure.Round {
	return func(ctx context.Context) (float64, error) {
		f, err := s.Round(ctx, d)
		if err != nil {
			return 0, err
		}
		if f.Failure != "" {
			return 0, fmt.Errorf("%w: %s", ErrQPFailed, f.Failure)
		}
		return figure(f), nil
	}
}

// IdleConnsOptions say who is connected with whom, idly. Transport is verbs.RC or
// verbs.UD.
type IdleConnsOptions struct {
	Transport verbs.QPType
	Peers     int // RC: a queue pair each at both ends; UD: one queue pair, and an address handle each
}

// A IdleConns is idle connections.
type IdleConns struct {
	targetHandle
	HeapBytes [2]int64 // what it takes of each end's heap
}

// OpenIdleConns makes idle connections and measures the memory they take.
func (p *Pair) OpenIdleConns(ctx context.Context, o IdleConnsOptions) (*IdleConns, error) {
	s, ends, err := p.openTarget(ctx, request{IdleConns: &o})
	if err != nil {
		return nil, err
	}
	return &IdleConns{s, [2]int64{ends[0].HeapBytes, ends[1].HeapBytes}}, nil
}
