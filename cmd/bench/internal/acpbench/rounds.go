package acpbench

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// warmup is the number of operations that are not measured.
const warmup = 20

type pingRound struct {
	Channel
	Size, Iters int
}

func (r *rank) runPing(ctx context.Context, q pingRound) (*measure.Latency, error) {
	half := measure.NewLatency()
	if r.Rank() > 1 {
		return half, nil
	}
	c, err := r.openChannels(q.Channel)
	if err != nil {
		return nil, err
	}
	out, in := newPattern(q.Size, 0), make([]byte, q.Size)
	n := 0
	last := time.Now()
	for i := range warmup + q.Iters {
		if r.Rank() == 0 {
			if _, err := c.to.Send(out).Wait(ctx); err != nil {
				return nil, err
			}
		}
		if n, err = c.from.Recv(in).Wait(ctx); err != nil {
			return nil, err
		}
		if r.Rank() == 1 {
			if _, err := c.to.Send(in).Wait(ctx); err != nil {
				return nil, err
			}
		}
		now := time.Now()
		if i >= warmup {
			half.Record(now.Sub(last) / 2)
		}
		last = now
	}
	return half, verifyMessage(in, n, out)
}

type streamRound struct {
	Channel
	Size, Count int
}

// workingSet is the size of the memory that messages cycle through, equal to that of bare
// streams (verbsbench), so that caches have the same effect on both.
const workingSet = 4 << 20

// maxInFlight returns the number of messages in flight.
func maxInFlight(size int) int { return max(2, min(workingSet/max(1, size), 64)) }

// runStream streams messages. A short message back ends the measurement.
func (r *rank) runStream(ctx context.Context, q streamRound) (float64, error) {
	if r.Rank() > 1 {
		return 0, nil
	}
	c, err := r.openChannels(q.Channel)
	if err != nil {
		return 0, err
	}
	window := maxInFlight(q.Size)
	bufs, pending := make([][]byte, window), make([]*acp.Request, window)
	for i := range bufs {
		bufs[i] = newPattern(q.Size, 0)
		if r.Rank() == 1 {
			clear(bufs[i])
		}
	}
	var began time.Time
	n := 0
	for i := range window + q.Count {
		if i == window { // all channels are connected
			began = time.Now()
		}
		k := i % window
		if pending[k] != nil {
			if n, err = pending[k].Wait(ctx); err != nil {
				return 0, err
			}
		}
		if r.Rank() == 0 {
			pending[k] = c.to.Send(bufs[k])
		} else {
			pending[k] = c.from.Recv(bufs[k])
		}
	}
	for i := range window {
		k := (q.Count + i) % window
		if n, err = pending[k].Wait(ctx); err != nil {
			return 0, err
		}
	}
	if r.Rank() == 1 {
		if _, err := c.to.Send([]byte{1}).Wait(ctx); err != nil {
			return 0, err
		}
		return 0, verifyMessage(bufs[0], n, newPattern(q.Size, 0))
	}
	if _, err := c.from.Recv(make([]byte, 1)).Wait(ctx); err != nil {
		return 0, err
	}
	return measure.MBps(int64(q.Size)*int64(q.Count), time.Since(began)), nil
}

type copyRound struct {
	Direction   Direction
	Size, Iters int
}

// arenaSize is the size of the memory of a rank for copies.
const arenaSize = 8 << 20

// shareMemory registers the memory and exchanges its address with all ranks through the starter
// memory.
func (r *rank) shareMemory(ctx context.Context) (err error) {
	if r.memory != nil {
		return nil
	}
	if r.memory, err = r.Register(newPattern(arenaSize, r.Rank())); err != nil {
		return err
	}
	ga := uint64(r.memory.GA(0))
	for rank := range r.Size() {
		acp.Swap[uint64](r.Process, nil, r.StarterGA(rank).Add(8*r.Rank()), ga, acp.None)
	}
	if err := r.Complete(ctx, acp.All); err != nil {
		return err
	}
	if err := r.Sync(ctx); err != nil {
		return err
	}
	for rank := range r.Size() {
		r.remoteMemory = append(r.remoteMemory, acp.GA(r.LoadStarter(8*rank)))
	}
	return nil
}

func (r *rank) runCopies(ctx context.Context, q copyRound) (float64, error) {
	if err := r.shareMemory(ctx); err != nil || r.Rank() > 0 {
		return 0, err
	}
	to, from := r.remoteMemory[0], r.remoteMemory[1]
	switch q.Direction {
	case LocalToRemote:
		to, from = from, to
	case RemoteToRemote:
		if r.Size() < 3 {
			return 0, fmt.Errorf("acpbench: copy %s: want 3 ranks", q.Direction)
		}
		to = r.remoteMemory[2]
	}
	to = to.Add(arenaSize / 2)
	var began time.Time
	for i := range warmup + q.Iters {
		if i == warmup {
			began = time.Now()
		}
		if err := r.Complete(ctx, r.Copy(to, from, q.Size, acp.None)); err != nil {
			return 0, err
		}
	}
	us := measure.Micros(time.Since(began)) / float64(q.Iters)
	back := r.remoteMemory[0].Add(arenaSize - q.Size)
	if err := r.Complete(ctx, r.Copy(back, to, q.Size, acp.None)); err != nil {
		return 0, err
	}
	return us, verifyMessage(r.memory.Bytes()[arenaSize-q.Size:], q.Size, newPattern(q.Size, from.Rank()))
}

type connectRound struct {
	Channel
	Count int
}

func (r *rank) runConnects(ctx context.Context, q connectRound) (connects, frees *measure.Latency, err error) {
	connects, frees = measure.NewLatency(), measure.NewLatency()
	slots := [2]int{q.SendSlots, q.RecvSlots}
	for range q.Count {
		if err := r.Sync(ctx); err != nil {
			return nil, nil, err
		}
		if r.Rank() > 1 {
			continue
		}
		began := time.Now()
		ch, err := r.NewChannel(0, 1, q.channelOptions(slots[r.Rank()]))
		if err != nil {
			return nil, nil, err
		}
		if r.Rank() == 0 {
			_, err = ch.Send([]byte{1}).Wait(ctx)
		} else {
			_, err = ch.Recv(make([]byte, 1)).Wait(ctx)
		}
		if err != nil {
			return nil, nil, err
		}
		connects.Record(time.Since(began))
		began = time.Now()
		if _, err := ch.Free().Wait(ctx); err != nil {
			return nil, nil, err
		}
		frees.Record(time.Since(began))
	}
	return connects, frees, nil
}
