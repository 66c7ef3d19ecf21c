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

// A Carrier is what a connection goes over; it also is the name of its series.
type Carrier string

// The carriers.
const (
	TCP    Carrier = "tcp"
	NIC    Carrier = "sdp-nic"
	RDMA   Carrier = "sdp-rdma"
	Credit Carrier = "sdp-credit"
)

// Designs are the carriers that are flow controls of SDP.
func Designs() []Carrier { return []Carrier{NIC, RDMA, Credit} }

// design is the flow control's name, and empty for TCP.
func (c Carrier) design() string {
	d, _ := strings.CutPrefix(string(c), "sdp-")
	if c == TCP {
		return ""
	}
	return d
}

// Config says how the connection of a pair is made. Only Over is required.
type Config struct {
	Over Carrier

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
	over Carrier
	g    *proc.Group
}

// Open starts the two processes and connects them. The caller closes the pair.
func Open(ctx context.Context, c Config) (*Pair, error) {
	if c.Over != TCP && !slices.Contains(Designs(), c.Over) {
		return nil, fmt.Errorf("sdpbench: no carrier %q; there are: %v", c.Over, append(Designs(), TCP))
	}
	end := proc.Spec{Name: worker, Role: roleEnd, Args: c}
	g, err := proc.Start(ctx, proc.Options{Pin: !c.Loose, Timeout: limit + 10*time.Second}, end, end)
	if err != nil {
		return nil, err
	}
	return &Pair{c.Over, g}, nil
}

// Close ends both processes. Closing twice is safe.
func (p *Pair) Close() { p.g.Close() }

func (p *Pair) call(ctx context.Context, r request) ([]reply, error) {
	ends, err := proc.Call[request, reply](ctx, p.g, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.over, err)
	}
	return ends, nil
}

// Ping does iters round trips of messages of size bytes, after some that do
// not count, and returns half of each one's time.
func (p *Pair) Ping(ctx context.Context, size, iters int) (*measure.Latency, error) {
	ends, err := p.call(ctx, request{Ping: &ping{size, iters}})
	if err != nil {
		return nil, err
	}
	return ends[0].Latency, nil
}

// PingRounds is Ping as measure.Alternate takes it; the figure is the median in
// microseconds. All that is measured is added to into, unless that is nil.
func (p *Pair) PingRounds(size, iters int, into *measure.Latency) measure.Round {
	return medianOf(into, func(ctx context.Context) (*measure.Latency, error) { return p.Ping(ctx, size, iters) })
}

// A Burst is what an end writes in its turn, and what both compute behind it.
type Burst struct {
	Messages, Size int
	Compute        Work
}

// Bursts does so many round trips of bursts and returns half of each one's
// time: one burst and the computation behind it.
func (p *Pair) Bursts(ctx context.Context, b Burst, rounds int) (*measure.Latency, error) {
	ends, err := p.call(ctx, request{Burst: &bursts{b, rounds}})
	if err != nil {
		return nil, err
	}
	return ends[0].Latency, nil
}

// BurstRounds is Bursts as measure.Alternate takes it.
func (p *Pair) BurstRounds(b Burst, rounds int, into *measure.Latency) measure.Round {
	return medianOf(into, func(ctx context.Context) (*measure.Latency, error) { return p.Bursts(ctx, b, rounds) })
}

// medianOf makes a round of single events one of its median in microseconds.
func medianOf(into *measure.Latency, round func(context.Context) (*measure.Latency, error)) measure.Round {
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
