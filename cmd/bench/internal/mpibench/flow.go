package mpibench

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
	"github.com/softrnic/softrnic/mpi"
)

// Flow selects the flow control of packets over RDMA.
type Flow struct {
	Mode    mpi.Flow
	Credits int // packets of memory for each peer; 0: the default of package mpi
}

func (c Flow) applyTo(o *mpi.Options) { o.RDMA.Flow, o.RDMA.Credits = c.Mode, c.Credits }

// A Burst is a number of messages with computation behind them.
type Burst struct {
	Messages, Size int
	Compute        sdpbench.Work
}

// A burstRound requests round trips of bursts between the first two ranks.
type burstRound struct {
	Burst
	Rounds int
}

// warmupBursts is the number of round trips of bursts that are not measured.
const warmupBursts = 3

// BurstRounds returns rounds of round trips of bursts: half of each round-trip time, which is that
// of one burst and the computation behind it, on both sides.
func (j *Job) BurstRounds(b Burst, rounds int, into *measure.Latency) measure.Round {
	return measure.MedianRounds(into, func(ctx context.Context) (*measure.Latency, error) {
		r, err := j.callRanks(ctx, request{Burst: &burstRound{b, rounds}})
		return r.Burst, err
	})
}

func (w rank) runBursts(b *burstRound) (*measure.Latency, error) {
	half := measure.NewLatency()
	message := make([]byte, b.Size)
	for i := range warmupBursts + b.Rounds {
		stamp, start := byte(i), time.Now()
		for _, sends := range []bool{w.Rank() == 0, w.Rank() != 0} {
			var err error
			if sends {
				err = w.sendBurst(b, message, stamp)
			} else {
				err = w.receiveBurst(b, message, stamp)
			}
			if err != nil {
				return nil, err
			}
			b.Compute.Execute()
		}
		if i >= warmupBursts {
			half.Record(time.Since(start) / 2)
		}
	}
	return half, nil
}

func (w rank) sendBurst(b *burstRound, message []byte, stamp byte) error {
	for i := range b.Messages {
		message[0], message[b.Size-1] = byte(i), stamp
		if err := w.Send(mpi.Bytes(message), 1-w.Rank(), 0); err != nil {
			return err
		}
	}
	return nil
}

func (w rank) receiveBurst(b *burstRound, message []byte, stamp byte) error {
	for i := range b.Messages {
		if _, err := w.Recv(mpi.Bytes(message), 1-w.Rank(), 0); err != nil {
			return err
		}
		if message[b.Size-1] != stamp || b.Size > 1 && message[0] != byte(i) {
			return fmt.Errorf("wrong data: message %d of burst 0x%02x: 0x%02x, stamp 0x%02x", i, stamp, message[0], message[b.Size-1])
		}
	}
	return nil
}

// PacketMemory returns the bytes that the packets of one peer take in a rank, on average over the
// ranks, after each has sent some hundreds of messages of the eager threshold to all others.
func (j *Job) PacketMemory(ctx context.Context) (mean float64, err error) {
	ranks, err := proc.Call[request, reply](ctx, j.Group, request{PacketMemory: true})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", j.Transport, err)
	}
	for _, r := range ranks {
		mean += r.PacketMemory / float64(len(ranks))
	}
	return mean, nil
}

func (w rank) measurePacketMemory() (float64, error) {
	const messages, size = 300, 8 << 10
	var sends []*mpi.Request
	for range messages {
		for to := range w.Size() {
			if to == w.Rank() {
				continue
			}
			r, err := w.Isend(mpi.Bytes(make([]byte, size)), to, 0)
			if err != nil {
				return 0, err
			}
			sends = append(sends, r)
		}
	}
	message := make([]byte, size)
	for range messages * (w.Size() - 1) {
		if _, err := w.Recv(mpi.Bytes(message), mpi.AnySource, 0); err != nil {
			return 0, err
		}
	}
	if _, err := mpi.WaitAll(sends...); err != nil {
		return 0, err
	}
	s := w.Stats()
	return float64(s.PacketMemory) / float64(s.Connections), w.Barrier()
}
