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

// Config describes how both devices of a pair are opened and connected.
type Config struct {
	MTU        int    // path MTU in bytes; 0: 4096
	RecvBuffer int    // rnic.Options.RecvBuffer: 0 requests a large buffer, -1 keeps the system's default
	Impair     string // rnic.Options.Impair, for both links

	// Spin is the time that a blocked waiter polls before it sleeps. 0 means no polling, as the
	// event series require.
	Spin time.Duration

	// Model of a cache of queue pair contexts; see rnic.ICM.
	ICMEntries     int
	ICMMissPenalty time.Duration

	NoSharedMemory bool // rnic.Options.NoSharedMemory: to measure the socket

	// Device is the name of a device of the kernel to use instead of softrnic. The fields above
	// except MTU do not apply to it.
	Device string

	Loose bool // the processes may run on all CPUs; else each is pinned to its own
}

// A Pair is two processes with a device each, which wait for requests. It is used by one
// goroutine only.
type Pair struct {
	*proc.Group
	next int // number of the next target
}

// OpenPair starts the two processes. The caller must close the pair, which closes every target.
func OpenPair(ctx context.Context, c Config) (*Pair, error) {
	if c.MTU == 0 {
		c.MTU = 4096
	}
	end := proc.Spec{Name: worker, Role: roleSide, Args: c}
	g, err := proc.Start(ctx, proc.Options{Pin: !c.Loose}, end, end)
	if err != nil {
		return nil, err
	}
	return &Pair{Group: g}, nil
}

// Usage returns the usage of each side while it waits for d.
func (p *Pair) Usage(ctx context.Context, d time.Duration) ([]measure.Usage, error) {
	ends, err := proc.Call[request, reply](ctx, p.Group, request{Idle: true, For: d})
	if err != nil {
		return nil, err
	}
	return []measure.Usage{ends[0].Usage, ends[1].Usage}, nil
}

// A targetHandle is the parent's handle of one target on both sides.
type targetHandle struct {
	pair *Pair
	id   int
}

// openTarget opens a target on both sides and returns their replies in rank order.
func (p *Pair) openTarget(ctx context.Context, r request) (targetHandle, []reply, error) {
	p.next++
	r.Target = p.next
	ends, err := proc.Call[request, reply](ctx, p.Group, r)
	return targetHandle{p, r.Target}, ends, err
}

// Close frees the resources of the target on both sides.
func (s targetHandle) Close(ctx context.Context) error {
	_, err := s.callFirst(ctx, request{Close: true})
	return err
}

// callFirst requests something of the target on both sides and returns the reply of rank 0.
func (s targetHandle) callFirst(ctx context.Context, r request) (reply, error) {
	r.Target = s.id
	return proc.CallFirst[request, reply](ctx, s.pair.Group, r)
}

// callBoth is callFirst with the replies of both sides, in rank order.
func (s targetHandle) callBoth(ctx context.Context, r request) ([]reply, error) {
	r.Target = s.id
	return proc.Call[request, reply](ctx, s.pair.Group, r)
}

// latencyRounds returns rounds of iters messages or operations. The figure is the median in
// microseconds. All times are added to into, unless it is nil.
func (s targetHandle) latencyRounds(iters int, into *measure.Latency) measure.Round {
	return measure.MedianRounds(into, func(ctx context.Context) (*measure.Latency, error) {
		first, err := s.callFirst(ctx, request{Iters: iters})
		return first.Latency, err
	})
}

// PingOptions are the options of OpenPingPong. Op and Size are required.
type PingOptions struct {
	Op    Op
	Size  int  // bytes of payload; 8 for RCAtomic
	Event bool // both sides block until a completion event, instead of polling
	QPs   int  // RCWrite: queue pairs used round-robin; 0 means 1
}

// A PingPong exchanges one message back and forth.
type PingPong struct{ targetHandle }

// OpenPingPong opens a ping-pong on the pair.
func (p *Pair) OpenPingPong(ctx context.Context, o PingOptions) (*PingPong, error) {
	s, _, err := p.openTarget(ctx, request{Ping: &o})
	if err != nil {
		return nil, err
	}
	return &PingPong{s}, nil
}

// LatencyRounds returns rounds of iters round trips for measure.Alternate. The figure is the
// median in microseconds of half a round trip, for reads and atomics of a whole one. All times
// are added to into, unless it is nil.
func (p *PingPong) LatencyRounds(iters int, into *measure.Latency) measure.Round {
	return p.latencyRounds(iters, into)
}

// StreamOptions are the options of OpenStream. Data flows from rank 0 to rank 1, for RCRead
// from rank 1 to rank 0. Op and Size are required.
type StreamOptions struct {
	Op    Op
	Size  int // bytes of one message
	List  int // requests posted in one list; 0 means 1
	Depth int // maximum number of requests in flight; 0 means 128, and fewer for long messages
}

// A Flow is the traffic of one round.
type Flow struct {
	Messages int64 // completely received
	Bytes    int64 // payload bytes of Messages
	Sent     int64 // requests: messages, or fragments of long UD messages
	Lost     int64 // lost requests (UC, UD), which are not retransmitted
	Elapsed  time.Duration
	Failure  string // error of the queue pair; the stream cannot be used afterwards
}

// MBps returns the payload rate in MB/s.
func (f Flow) MBps() float64 { return measure.MBps(f.Bytes, f.Elapsed) }

// MessagesPerSecond returns the message rate.
func (f Flow) MessagesPerSecond() float64 { return measure.PerSecond(f.Messages, f.Elapsed) }

// A Stream sends messages in one direction at full speed.
type Stream struct {
	targetHandle
	sent, lost int64
}

// LostPercent returns the share of lost requests in all rounds.
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

// Round streams messages for d.
func (s *Stream) Round(ctx context.Context, d time.Duration) (Flow, error) {
	first, err := s.callFirst(ctx, request{For: d})
	if err != nil {
		return Flow{}, err
	}
	f := *first.Flow
	s.sent += f.Sent
	s.lost += f.Lost
	return f, nil
}

// ErrQPFailed is wrapped by errors of a stream whose queue pair failed.
var ErrQPFailed = errors.New("verbsbench: queue pair failed")

// Rounds returns Round for measure.Alternate, with Flow.MBps or Flow.MessagesPerSecond as the
// figure. A round returns ErrQPFailed if the queue pair fails.
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

// IdleConnsOptions are the options of OpenIdleConns. Transport is verbs.RC or verbs.UD.
type IdleConnsOptions struct {
	Transport verbs.QPType
	Peers     int // RC: queue pairs on both sides; UD: address handles of one queue pair
}

// IdleConns are idle connections.
type IdleConns struct {
	targetHandle
	HeapBytes [2]int64 // heap growth of each side
}

// OpenIdleConns creates idle connections and measures their memory.
func (p *Pair) OpenIdleConns(ctx context.Context, o IdleConnsOptions) (*IdleConns, error) {
	s, ends, err := p.openTarget(ctx, request{IdleConns: &o})
	if err != nil {
		return nil, err
	}
	return &IdleConns{s, [2]int64{ends[0].HeapBytes, ends[1].HeapBytes}}, nil
}
