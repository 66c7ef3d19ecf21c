package udpraw

import (
	"context"
	"time"
)

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
