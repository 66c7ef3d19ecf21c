package sdpbench

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

const warmup = 200 // round trips that are not measured

// A pingRound requests a ping-pong.
type pingRound struct{ Size, Iters int }

func (p *pingRound) runRound(ctx context.Context, e *side) (*measure.Latency, error) {
	out := append([]byte(nil), e.payloadPattern(p.Size)...)
	in := e.clearedBuffer(p.Size)
	write := func(i int) error {
		out[p.Size-1] = roundStamp(i)
		_, err := e.conn.Write(out)
		return err
	}
	read := func(i int) error {
		if _, err := io.ReadFull(e.conn, in); err != nil {
			return err
		}
		if last := in[p.Size-1]; last != roundStamp(i) {
			return fmt.Errorf("wrong data: message %d: last byte 0x%02x, want 0x%02x", i, last, roundStamp(i))
		}
		return nil
	}
	half, err := e.exchangeRounds(ctx, warmup, p.Iters, write, read)
	if err != nil {
		return nil, err
	}
	return half, e.payloadPattern(p.Size).Check(in[:p.Size-1], false)
}

// roundStamp returns the last byte of each message of round i.
func roundStamp(i int) byte { return byte(1 + i%255) }

// exchangeRounds runs round trips, in which rank 0 writes first, and returns half of each time
// after the warm-up.
func (e *side) exchangeRounds(ctx context.Context, warmup, rounds int, write, read func(i int) error) (*measure.Latency, error) {
	if err := proc.Barrier(ctx, e.Worker); err != nil {
		return nil, err
	}
	half := measure.NewLatency()
	last := time.Now()
	for i := range warmup + rounds {
		if e.Rank == 0 {
			if err := write(i); err != nil {
				return nil, err
			}
		}
		if err := read(i); err != nil {
			return nil, err
		}
		if e.Rank == 1 {
			if err := write(i); err != nil {
				return nil, err
			}
		}
		now := time.Now()
		if i >= warmup {
			half.Record(now.Sub(last) / 2)
		}
		last = now
	}
	return half, e.exchangeRoundAck()
}

// warmupBursts is the number of round trips of bursts that are not measured.
const warmupBursts = 3

// A burstRound requests round trips of bursts: figure 7 of the paper.
type burstRound struct {
	Burst
	Rounds int
}

func (b *burstRound) runRound(ctx context.Context, e *side) (*measure.Latency, error) {
	out := append([]byte(nil), e.payloadPattern(b.Size)...)
	in := e.clearedBuffer(b.Messages * b.Size)
	half, err := e.exchangeRounds(ctx, warmupBursts, b.Rounds,
		func(i int) error { return b.writeBurst(e, out, roundStamp(i)) },
		func(i int) error { return b.readBurst(e, in, roundStamp(i)) })
	if err != nil {
		return nil, err
	}
	return half, b.verifyBurst(e, in)
}

// writeBurst sends a burst and then computes.
func (b *burstRound) writeBurst(e *side, message []byte, stamp byte) error {
	message[b.Size-1] = stamp
	for range b.Messages {
		if _, err := e.conn.Write(message); err != nil {
			return err
		}
	}
	b.Compute.Execute()
	return nil
}

// readBurst receives a burst, verifies the stamps of the messages, and computes.
func (b *burstRound) readBurst(e *side, memory []byte, stamp byte) error {
	for i := range b.Messages {
		message := memory[i*b.Size : (i+1)*b.Size]
		if _, err := io.ReadFull(e.conn, message); err != nil {
			return err
		}
		if last := message[b.Size-1]; last != stamp {
			return fmt.Errorf("wrong data: message %d of burst 0x%02x: stamp 0x%02x", i, stamp, last)
		}
	}
	b.Compute.Execute()
	return nil
}

// verifyBurst verifies all bytes of the last burst.
func (b *burstRound) verifyBurst(e *side, memory []byte) error {
	want := e.payloadPattern(b.Size)
	for i := range b.Messages {
		message := memory[i*b.Size : (i+1)*b.Size]
		if err := want.Check(message[:b.Size-1], false); err != nil {
			return fmt.Errorf("message %d of a burst: %w", i, err)
		}
	}
	return nil
}

// Work is an amount of computation, counted in steps that depend on one another.
type Work int

// CalibrateWork returns the work that this machine does in d without disturbance: that of the
// best of several tries, which take some milliseconds. Targets that are compared must use the
// same value.
func CalibrateWork(d time.Duration) Work {
	const steps, tries = 1 << 20, 12
	if d <= 0 {
		return 0
	}
	best := time.Duration(1<<63 - 1)
	for range tries {
		start := time.Now()
		Work(steps).Execute()
		best = min(best, time.Since(start))
	}
	return Work(float64(d) * steps / float64(max(best, 1)))
}

// forBytes returns the work for n bytes, where w is the work for each KiB.
func (w Work) forBytes(n int) Work { return w * Work(n) / 1024 }

// workResult keeps the result of the work, so that the compiler cannot remove it.
var workResult uint64

// Execute does the work.
func (w Work) Execute() {
	x := workResult | 1
	for range int(w) {
		x ^= x << 13 // Marsaglia's xorshift
		x ^= x >> 7
		x ^= x << 17
	}
	workResult = x
}
