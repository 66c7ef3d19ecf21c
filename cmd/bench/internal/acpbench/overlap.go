package acpbench

import (
	"context"
	"time"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/overlap"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// An overlapRound requests transfers of rank 0 beside a computation: messages through a channel, or
// copies to rank 1.
type overlapRound struct {
	Channel
	Copies      bool
	Size, Count int
}

// OverlapMessages computes at rank 0 beside messages that it sends. Rank 1 only receives.
func (j *Job) OverlapMessages(ctx context.Context, c Channel, size, count int) (overlap.Result, error) {
	first, err := proc.CallFirst[request, reply](ctx, j.Group, request{Overlap: &overlapRound{Channel: c, Size: size, Count: count}})
	return first.Overlap, err
}

// OverlapCopies computes at rank 0 beside its copies to rank 1, whose program does nothing.
func (j *Job) OverlapCopies(ctx context.Context, size, count int) (overlap.Result, error) {
	first, err := proc.CallFirst[request, reply](ctx, j.Group, request{Overlap: &overlapRound{Copies: true, Size: size, Count: count}})
	return first.Overlap, err
}

// StolenRounds returns rounds in which rank 0 computes for d of processor time, and nothing is sent.
// The figure is the processor time that other goroutines take, in percent of that of the process.
func (j *Job) StolenRounds(d time.Duration) measure.Round { return j.figureRounds(request{Compute: d}) }

func (r *rank) runOverlap(ctx context.Context, q overlapRound) (result overlap.Result, err error) {
	if q.Copies {
		return r.overlapCopies(ctx, q)
	}
	if r.Rank() > 1 {
		return result, nil
	}
	c, err := r.openChannels(q.Channel)
	if err != nil {
		return result, err
	}
	message := newPattern(q.Size, 0)
	if r.Rank() == 0 {
		return overlap.Measure(func() (overlap.Wait, error) {
			sent := c.to.Send(message)
			return func() error {
				_, err := sent.Wait(ctx)
				if err == nil {
					_, err = c.from.Recv(make([]byte, 1)).Wait(ctx) // rank 1 has the message
				}
				return err
			}, nil
		}, q.Count)
	}
	in, n := make([]byte, q.Size), 0
	for range overlap.Transfers(q.Count) {
		if n, err = c.from.Recv(in).Wait(ctx); err != nil {
			return result, err
		}
		if _, err = c.to.Send([]byte{1}).Wait(ctx); err != nil {
			return result, err
		}
	}
	return result, verifyMessage(in, n, message)
}

func (r *rank) overlapCopies(ctx context.Context, q overlapRound) (result overlap.Result, err error) {
	if err := r.shareMemory(ctx); err != nil || r.Rank() > 0 {
		return result, err
	}
	to, from := r.remoteMemory[1].Add(arenaSize/2), r.remoteMemory[0]
	result, err = overlap.Measure(func() (overlap.Wait, error) {
		h := r.Copy(to, from, q.Size, acp.None)
		return func() error { return r.Complete(ctx, h) }, nil
	}, q.Count)
	if err != nil {
		return result, err
	}
	back := from.Add(arenaSize - q.Size)
	if err := r.Complete(ctx, r.Copy(back, to, q.Size, acp.None)); err != nil {
		return result, err
	}
	return result, verifyMessage(r.memory.Bytes()[arenaSize-q.Size:], q.Size, newPattern(q.Size, 0))
}
