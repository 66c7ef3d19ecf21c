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

// A Transport is what a connection goes over; it also is the name of its series.
type Transport string

// The carriers.
const (
	TCP    Transport = "tcp"
	NIC    Transport = "sdp-nic"
	RDMA   Transport = "sdp-rdma"
	Credit Transport = "sdp-credit"
)

// FlowControls are the carriers that are flow controls of SDP.
func FlowControls() []Transport { return []Transport{NIC, RDMA, Credit} }

// flowControl is the flow control's name, and empty for TCP.
func (c Transport) flowControl() string {
	d, _ := strings.CutPrefix(string(c), "sdp-")
	if c == TCP {
		return ""
	}
	return d
}

// Config says how the connection of a pair is made. Only Over is required.
type Config struct {
	Transport Transport

	// The buffers of SDP as sdp.Options has them. With TCP their product is
	// the size of both socket buffers; 0 leaves these to the system.
	Buffers, BufferBytes int

	ZeroCopy int // as sdp.Options has it: 0 is the default threshold, negative never

	// Spin is how long a waiter looks before it sleeps, as rnic.Options has it:
	// 0 is the default, negative not at all. TCP waits as Go does.
	Spin time.Duration

	// Loose leaves it to the system which CPUs the processes use.
	Loose bool
}

// A Pair is two processes with a connection that wait until they are asked for
// a round. For one goroutine.
type Pair struct {
	transport Transport
	g         *proc.Group
}

// Open starts the two processes and connects them. The caller closes the pair.
func Open(ctx context.Context, c Config) (*Pair, error) {
	if c.Transport != TCP && !slices.Contains(FlowControls(), c.Transport) {
		return nil, fmt.Errorf("sdpbench: no carrier %q; there are: %v", c.Transport, append(FlowControls(), TCP))
	}
	end := proc.Spec{Name: worker, Role: roleSide, Args: c}
	g, err := proc.Start(ctx, proc.Options{Pin: !c.Loose, Timeout: roundTimeout + 10*time.Second}, end, end)
	if err != nil {
		return nil, err
	}
	return &Pair{c.Transport, g}, nil
}

// Close ends both processes. Closing twice is safe.
func (p *Pair) Close() { p.g.Close() }

func (p *Pair) callBoth(ctx context.Context, r request) ([]reply, error) {
	ends, err := proc.Call[request, reply](ctx, p.g, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.transport, err)
	}
	return ends, nil
}

// Ping does iters round trips of messages of size bytes, after some that do
// not count, and returns half of each one's time.
func (p *Pair) Ping(ctx context.Context, size, iters int) (*measure.Latency, error) {
	ends, err := p.callBoth(ctx, request{Ping: &pingRound{size, iters}})
	if err != nil {
		return nil, err
	}
	return ends[0].Latency, nil
}

// PingRounds is Ping as measure.Alternate takes it; the figure is the median in
// microseconds. All that is measured is added to into, unless that is nil.
func (p *Pair) PingRounds(size, iters int, into *measure.Latency) measure.Round {
	return medianRound(into, func(ctx context.Context) (*measure.Latency, error) { return p.Ping(ctx, size, iters) })
}

// A Burst is what an end writes in its turn, and what both compute behind it.
type Burst struct {
	Messages, Size int
	Compute        Work
}

// Bursts does so many round trips of bursts and returns half of each one's
// time: one burst and the computation behind it.
func (p *Pair) Bursts(ctx context.Context, b Burst, rounds int) (*measure.Latency, error) {
	ends, err := p.callBoth(ctx, request{Burst: &burstRound{b, rounds}})
	if err != nil {
		return nil, err
	}
	return ends[0].Latency, nil
}

// BurstRounds is Bursts as measure.Alternate takes it.
func (p *Pair) BurstRounds(b Burst, rounds int, into *measure.Latency) measure.Round {
	return medianRound(into, func(ctx context.Context) (*measure.Latency, error) { return p.Bursts(ctx, b, rounds) })
}

// medianRound makes a round of single events one of its median in microseconds.
func medianRound(into *measure.Latency, round func(context.Context) (*measure.Latency, error)) measure.Round {
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
