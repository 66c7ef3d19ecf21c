package udpraw

import (
	"context"
	"time"
)

const (
	trialTime   = 15 * time.Millisecond
	trialRounds = 2 // of which the better counts
)

// windows are tried in this order, in batches and in single packets. More than
// these fill nothing but the cache.
var (
	batchWindows  = []int{2, 3, 4, 6, 8, 16, 32}
	packetWindows = []int{4, 8, 16, 32, 64, 128}
)

// tuneWindow fills in Batch and Window. As many packets as fit into one system call
// have always been fastest; how much may be in flight depends on the receive
// buffer, whose real capacity no call tells, so it is tried out: the fastest
// that loses nothing.
func (b *Bandwidth) tuneWindow(ctx context.Context) error {
	if b.o.Batch == 0 {
		b.o.Batch = 1
		if b.o.Offload {
			b.o.Batch = min(MaxSegments(), maxDatagram/(b.o.Payload+overhead))
		}
	}
	if b.o.Window != 0 {
		_, err := b.runTrial(ctx, 0, b.o.Batch, b.o.Window) // to see both ends at work
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
