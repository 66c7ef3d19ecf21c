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
	if err := proc.Barrier(ctx, e.Worker); err != nil {
		return nil, err
	}
	half := measure.NewLatency()
	last := time.Now()
	for i := range warmup + p.Iters {
		stamp := byte(1 + i%255)
		out[p.Size-1] = stamp
		if e.Rank == 0 {
			if _, err := e.conn.Write(out); err != nil {
				return nil, err
			}
		}
		if _, err := io.ReadFull(e.conn, in); err != nil {
			return nil, err
		}
		if in[p.Size-1] != stamp {
			return nil, fmt.Errorf("wrong data: message %d: last byte 0x%02x, want 0x%02x", i, in[p.Size-1], stamp)
		}
		if e.Rank == 1 {
			if _, err := e.conn.Write(out); err != nil {
				return nil, err
			}
		}
		now := time.Now()
		if i >= warmup {
			half.Record(now.Sub(last) / 2)
		}
		last = now
	}
	if err := e.exchangeRoundAck(); err != nil {
		return nil, err
	}
	return half, e.payloadPattern(p.Size).Check(in[:p.Size-1], false)
}
