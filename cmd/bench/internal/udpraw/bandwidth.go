package udpraw

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/bench/internal/sharedfile"
)

// Credits selects how the sink reports received packets to the source.
type Credits string

const (
	// CreditsShared uses a shared memory page, so that the sockets carry data only. It is the
	// default if the system supports it.
	CreditsShared Credits = "shared"
	// CreditsByDatagram sends datagrams in the opposite direction, four for each window, like
	// the acknowledgements of a transport.
	CreditsByDatagram Credits = "datagram"
)

// BandwidthOptions are the options of a bandwidth session. Payload is required.
type BandwidthOptions struct {
	Payload    int     // payload bytes of a packet: the path MTU of the compared transport
	Offload    bool    // use GSO and GRO instead of one packet per system call
	RecvBuffer int     // requested bytes; 0 keeps the system's default
	Credits    Credits // empty: CreditsShared if supported
	Batch      int     // packets in one GSO buffer; 0: the fastest number
	Window     int     // packets in flight; 0: the fastest number without loss
}

// A Flow is the traffic of one round.
type Flow struct {
	Packets    int64         // received, verified and copied
	Bytes      int64         // payload bytes of Packets
	Lost       int64         // lost packets
	Elapsed    time.Duration // from the first send to the last credit
	RecvBuffer int           // effective receive buffer in bytes; 0 if unknown
}

// MBps returns the payload rate in MB/s.
func (f Flow) MBps() float64 { return measure.MBps(f.Bytes, f.Elapsed) }

// PacketsPerSecond returns the packet rate.
func (f Flow) PacketsPerSecond() float64 { return measure.PerSecond(f.Packets, f.Elapsed) }

// A Bandwidth is a session of two processes, a source and a sink, which wait for requests. It
// is used by one goroutine only.
type Bandwidth struct {
	*proc.Group
	o          BandwidthOptions
	creditFile string
	round      uint64
}

// OpenBandwidth starts the two processes and determines the fastest batch and window. The
// caller must close the session.
func OpenBandwidth(ctx context.Context, o BandwidthOptions) (*Bandwidth, error) {
	if o.Payload < 1 || o.Payload > MaxPayload {
		return nil, fmt.Errorf("udpraw: payload of %d bytes: want 1 to %d", o.Payload, MaxPayload)
	}
	b := &Bandwidth{o: o}
	if o.Credits != CreditsByDatagram {
		path, err := sharedfile.Create(os.Getpagesize())
		switch {
		case err == nil:
			b.creditFile, b.o.Credits = path, CreditsShared
		case o.Credits == CreditsShared:
			return nil, err
		default:
			b.o.Credits = CreditsByDatagram
		}
	}
	defer b.removeCreditFile() // both processes have it open after the first round
	args := bandwidthArgs{b.o, b.creditFile}
	var err error
	b.Group, err = proc.Start(ctx, proc.Options{Pin: true},
		proc.Spec{Name: worker, Role: roleSource, Args: args},
		proc.Spec{Name: worker, Role: roleSink, Args: args})
	if err != nil {
		return nil, err
	}
	if err := b.tuneWindow(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Options returns the options of the session, including the determined batch and window.
func (b *Bandwidth) Options() BandwidthOptions { return b.o }

// Round sends packets for d.
func (b *Bandwidth) Round(ctx context.Context, d time.Duration) (Flow, error) {
	return b.runTrial(ctx, d, b.o.Batch, b.o.Window)
}

func (b *Bandwidth) runTrial(ctx context.Context, d time.Duration, batch, window int) (Flow, error) {
	b.round++
	ends, err := proc.Call[bandwidthRound, Flow](ctx, b.Group, bandwidthRound{b.round, d, batch, window})
	if err != nil {
		return Flow{}, err
	}
	f := ends[0]
	f.RecvBuffer = ends[1].RecvBuffer
	return f, nil
}

// Rounds returns Round for measure.Alternate, with Flow.MBps or Flow.PacketsPerSecond as the
// figure.
func (b *Bandwidth) Rounds(d time.Duration, figure func(Flow) float64) measure.Round {
	return func(ctx context.Context) (float64, error) {
		f, err := b.Round(ctx, d)
		if err != nil {
			return 0, err
		}
		return figure(f), nil
	}
}

func (b *Bandwidth) removeCreditFile() {
	if b.creditFile != "" {
		_ = os.Remove(b.creditFile) // on failure one page stays allocated until the next boot
	}
}

const (
	trialTime   = 15 * time.Millisecond
	trialRounds = 2 // the better one counts
)

// Candidate windows in batches and in single packets. Larger windows only fill the cache.
var (
	batchWindows  = []int{2, 3, 4, 6, 8, 16, 32}
	packetWindows = []int{4, 8, 16, 32, 64, 128}
)

// tuneWindow sets Batch and Window. The largest batch of one system call is the fastest. The
// window depends on the receive buffer, whose real capacity no system call reports. Therefore
// trials determine the fastest window without loss.
func (b *Bandwidth) tuneWindow(ctx context.Context) error {
	if b.o.Batch == 0 {
		b.o.Batch = 1
		if b.o.Offload {
			b.o.Batch = min(MaxSegments(), maxDatagram/(b.o.Payload+overhead))
		}
	}
	if b.o.Window != 0 {
		_, err := b.runTrial(ctx, 0, b.o.Batch, b.o.Window) // to check that both processes work
		return err
	}
	candidates := packetWindows
	if b.o.Batch > 1 {
		candidates = batchWindows
	}
	best := -1.0
	for _, c := range candidates {
		window := c * b.o.Batch
		var rate float64
		var lost int64
		for range trialRounds {
			f, err := b.runTrial(ctx, trialTime, b.o.Batch, window)
			if err != nil {
				return err
			}
			rate = max(rate, f.MBps())
			lost += f.Lost
		}
		if lost > 0 && best >= 0 {
			break // larger windows lose more
		}
		if rate > best {
			best, b.o.Window = rate, window
		}
	}
	return nil
}
