package sdpbench

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// warmBursts are round trips of bursts before those that count.
const warmBursts = 3

// bursts asks for round trips of bursts: figure 7 of the paper.
type bursts struct {
	Burst
	Rounds int
}

func (b *bursts) run(ctx context.Context, e *end) (*measure.Latency, error) {
	out := append([]byte(nil), e.pattern(b.Size)...)
	in := e.empty(b.Messages * b.Size)
	if err := proc.Barrier(ctx, e.Worker); err != nil {
		return nil, err
	}
	half := measure.NewLatency()
	last := time.Now()
	for i := range warmBursts + b.Rounds {
		stamp := byte(1 + i%255)
		if e.Rank == 0 {
			if err := b.write(e, out, stamp); err != nil {
				return nil, err
			}
		}
		if err := b.read(e, in, stamp); err != nil {
			return nil, err
		}
		if e.Rank == 1 {
			if err := b.write(e, out, stamp); err != nil {
				return nil, err
			}
		}
		now := time.Now()
		if i >= warmBursts {
			half.Record(now.Sub(last) / 2)
		}
		last = now
	}
	if err := e.settle(); err != nil {
		return nil, err
	}
	return half, b.check(e, in)
}

// write sends a burst and computes.
func (b *bursts) write(e *end, message []byte, stamp byte) error {
	message[b.Size-1] = stamp
	for range b.Messages {
		if _, err := e.conn.Write(message); err != nil {
			return err
		}
	}
	b.Compute.do()
	return nil
}

// read takes a burst, looks at the messages' stamps, and computes.
func (b *bursts) read(e *end, memory []byte, stamp byte) error {
	for i := range b.Messages {
		message := memory[i*b.Size : (i+1)*b.Size]
		if _, err := io.ReadFull(e.conn, message); err != nil {
			return err
		}
		if last := message[b.Size-1]; last != stamp {
			return fmt.Errorf("wrong answer: message %d of burst 0x%02x is of burst 0x%02x", i, stamp, last)
		}
	}
	b.Compute.do()
	return nil
}

// check looks at all bytes of the last burst.
func (b *bursts) check(e *end, memory []byte) error {
	want := e.pattern(b.Size)
	for i := range b.Messages {
		message := memory[i*b.Size : (i+1)*b.Size]
		if err := want.Check(message[:b.Size-1], false); err != nil {
			return fmt.Errorf("message %d of a burst: %w", i, err)
		}
	}
	return nil
}
