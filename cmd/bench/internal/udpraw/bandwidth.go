package udpraw

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// Credits is the way in which the sink tells the source what it has taken.
type Credits string

const (
	// CreditsShared uses a page of memory that both map: the data has the
	// sockets for itself. It is the default where the system has it.
	CreditsShared Credits = "shared"
	// CreditsByDatagram uses datagrams the other way, four a window, as a
	// transport's acknowledgements.
	CreditsByDatagram Credits = "datagram"
)

// BandwidthOptions say what a bandwidth session moves, and how. Payload is
// required.
type BandwidthOptions struct {
	Payload    int     // bytes of payload a packet: the path MTU of what is compared
	Offload    bool    // GSO out and GRO in; else one packet per system call
	RecvBuffer int     // bytes to ask for; 0 leaves the system's default
	Credits    Credits // empty: shared memory if the system has it
	Batch      int     // packets in one GSO buffer; 0: as many as go fastest
	Window     int     // packets in flight; 0: as many as go fastest and lose nothing
}

// A Flow is what one round moved.
type Flow struct {
	Packets    int64         // that arrived whole and were copied
	Bytes      int64         // of payload in them
	Lost       int64         // packets
	Elapsed    time.Duration // from the first send to the last credit
	RecvBuffer int           // bytes that the kernel charges arrivals against; 0 if it does not tell
}

// MBps is the payload rate in MB/s.
func (f Flow) MBps() float64 { return measure.MBps(f.Bytes, f.Elapsed) }

// PacketsPerSecond is the packet rate.
func (f Flow) PacketsPerSecond() float64 { return measure.PerSecond(f.Packets, f.Elapsed) }

// A Bandwidth is a session of two processes, a source and a sink, that wait
// until they are asked for a round. For one goroutine.
type Bandwidth struct {
	o          BandwidthOptions
	g          *proc.Group
	creditFile string
	round      uint64
}

// OpenBandwidth starts the two processes and finds the batch and the window
// that go fastest. The caller closes the session.
func OpenBandwidth(ctx context.Context, o BandwidthOptions) (*Bandwidth, error) {
	if o.Payload < 1 || o.Payload > MaxPayload {
		return nil, fmt.Errorf("udpraw: a payload of %d bytes does not fit in a datagram (1 to %d)", o.Payload, MaxPayload)
	}
	b := &Bandwidth{o: o}
	if o.Credits != CreditsByDatagram {
		path, err := newCreditFile()
		switch {
		case err == nil:
			b.creditFile, b.o.Credits = path, CreditsShared
		case o.Credits == CreditsShared:
			return nil, err
		default:
			b.o.Credits = CreditsByDatagram
		}
	}
	defer b.removeCreditFile() // both ends have it open when the first round is over
	args := bandwidthArgs{b.o, b.creditFile}
	var err error
	b.g, err = proc.Start(ctx, proc.Options{Pin: true},
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

// Options are those of the session with everything found out filled in.
func (b *Bandwidth) Options() BandwidthOptions { return b.o }

// Round moves packets for d.
func (b *Bandwidth) Round(ctx context.Context, d time.Duration) (Flow, error) {
	return b.runTrial(ctx, d, b.o.Batch, b.o.Window)
}

func (b *Bandwidth) runTrial(ctx context.Context, d time.Duration, batch, window int) (Flow, error) {
	b.round++
	ends, err := proc.Call[bandwidthRound, Flow](ctx, b.g, bandwidthRound{b.round, d, batch, window})
	if err != nil {
		return Flow{}, err
	}
	f := ends[0]
	f.RecvBuffer = ends[1].RecvBuffer
	return f, nil
}

// Rounds is Round as measure.Alternate takes it, with the figure of interest:
// Flow.MBps or Flow.PacketsPerSecond.
func (b *Bandwidth) Rounds(d time.Duration, figure func(Flow) float64) measure.Round {
	return func(ctx context.Context) (float64, error) {
		f, err := b.Round(ctx, d)
		if err != nil {
			return 0, err
		}
		return figure(f), nil
	}
}

// Close ends both processes. Closing twice is safe.
func (b *Bandwidth) Close() { b.g.Close() }

func (b *Bandwidth) removeCreditFile() {
	if b.creditFile != "" {
		_ = os.Remove(b.creditFile) // a page of memory, lost until the next boot at worst
	}
}
