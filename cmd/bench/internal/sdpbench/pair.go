package sdpbench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// A Transport is the transport of a connection, and the name of its series.
type Transport string

// The transports.
const (
	TCP    Transport = "tcp"
	NIC    Transport = "sdp-nic"
	RDMA   Transport = "sdp-rdma"
	Credit Transport = "sdp-credit"
)

// FlowControls returns the transports that are flow control modes of SDP.
func FlowControls() []Transport { return []Transport{NIC, RDMA, Credit} }

// flowControl returns the name of the flow control mode, or "" for TCP.
func (c Transport) flowControl() string {
	d, _ := strings.CutPrefix(string(c), "sdp-")
	if c == TCP {
		return ""
	}
	return d
}

// Config describes the connection of a pair. Only Transport is required.
type Config struct {
	Transport Transport

	// The buffers of SDP; see sdp.Options. With TCP their product is the size of both socket
	// buffers; 0 keeps the system's default.
	Buffers, BufferBytes int

	ZeroCopy int // sdp.Options.ZeroCopy: 0 is the default threshold, negative disables it

	// Spin is the time that a waiter polls before it sleeps; see rnic.Options: 0 is the
	// default, negative disables polling. TCP waits as package net does.
	Spin time.Duration

	// Impair is rnic.Options.Impair of both adapters. TCP has none.
	Impair string

	// Loose leaves the choice of CPUs for the processes to the system.
	Loose bool
}

// A Pair is two connected processes that wait for requests. It is used by one goroutine only.
type Pair struct {
	*proc.Group
	transport Transport
}

// Open starts the two processes and connects them. The caller must close the pair.
func Open(ctx context.Context, c Config) (*Pair, error) {
	if c.Transport != TCP && !slices.Contains(FlowControls(), c.Transport) {
		return nil, fmt.Errorf("sdpbench: unknown transport %q; known transports: %v", c.Transport, append(FlowControls(), TCP))
	}
	end := proc.Spec{Name: worker, Role: roleSide, Args: c}
	g, err := proc.Start(ctx, proc.Options{Pin: !c.Loose, Timeout: roundTimeout + 10*time.Second}, end, end)
	if err != nil {
		return nil, err
	}
	return &Pair{g, c.Transport}, nil
}

func (p *Pair) callBoth(ctx context.Context, r request) ([]reply, error) {
	ends, err := proc.Call[request, reply](ctx, p.Group, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.transport, err)
	}
	return ends, nil
}

// Ping runs iters round trips of messages of size bytes after a warm-up, and returns half of
// each round-trip time.
func (p *Pair) Ping(ctx context.Context, size, iters int) (*measure.Latency, error) {
	ends, err := p.callBoth(ctx, request{Ping: &pingRound{size, iters}})
	if err != nil {
		return nil, err
	}
	return ends[0].Latency, nil
}

// PingRounds returns Ping for measure.Alternate. The figure is the median in microseconds. All
// times are added to into, unless it is nil.
func (p *Pair) PingRounds(size, iters int, into *measure.Latency) measure.Round {
	return measure.MedianRounds(into, func(ctx context.Context) (*measure.Latency, error) { return p.Ping(ctx, size, iters) })
}

// A Burst is a burst of messages, and the computation of both sides behind it.
type Burst struct {
	Messages, Size int
	Compute        Work
}

// Bursts runs round trips of bursts and returns half of each round-trip time: one burst and the
// computation behind it.
func (p *Pair) Bursts(ctx context.Context, b Burst, rounds int) (*measure.Latency, error) {
	ends, err := p.callBoth(ctx, request{Burst: &burstRound{b, rounds}})
	if err != nil {
		return nil, err
	}
	return ends[0].Latency, nil
}

// BurstRounds returns Bursts for measure.Alternate.
func (p *Pair) BurstRounds(b Burst, rounds int, into *measure.Latency) measure.Round {
	return measure.MedianRounds(into, func(ctx context.Context) (*measure.Latency, error) { return p.Bursts(ctx, b, rounds) })
}
