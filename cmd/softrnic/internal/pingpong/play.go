package pingpong

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// Kinds of work, in WRID and in what a queue pair waits for.
const (
	recvWork = 1
	sendWork = 2
)

// glance is the number of polls between two checks of the context.
const glance = 1 << 10

// game is a side while messages go to and fro.
type game struct {
	*end
	send     []verbs.SendWR // one a queue pair
	index    map[uint32]int // queue pair by number
	pending  []int          // what each queue pair waits for until it sends again
	posted   int            // receives
	sent     int
	received int
}

// play exchanges the messages and returns how many went each way and the time it took,
// also when ctx has ended it before all had.
func (e *end) play(ctx context.Context) (iters int, elapsed time.Duration, err error) {
	ctx, alive := watch.Start(ctx, e.Idle)
	defer alive.Stop()
	g := e.newGame()
	if e.Server != "" {
		for i := range e.qps {
			if err := g.serve(i); err != nil {
				return 0, 0, err
			}
		}
	}
	wcs := make([]verbs.WC, e.RxDepth+e.NumQP)
	start := time.Now()
	for g.sent < e.Iters || g.received < e.Iters {
		n, err := e.wait(ctx, wcs)
		if err != nil {
			return min(g.sent, g.received), time.Since(start), g.explain(err)
		}
		alive.Beat()
		for i := range wcs[:n] {
			if err := g.take(&wcs[i]); err != nil {
				return 0, 0, err
			}
		}
	}
	return e.Iters, time.Since(start), nil
}

func (e *end) newGame() *game {
	g := &game{end: e, index: make(map[uint32]int), posted: e.RxDepth}
	for i, qp := range e.qps {
		g.index[qp.Num()] = i
		g.pending = append(g.pending, recvWork)
		wr := verbs.SendWR{WRID: sendWork, Opcode: verbs.WRSend, Flags: verbs.SendSignaled,
			SGList: []verbs.SGE{e.mr.SGE(e.room, e.Size)}}
		if e.Kind == UD {
			wr.AH, wr.RemoteQPN, wr.RemoteQKey = e.ah, e.remote[0].QPN, qkey
		}
		g.send = append(g.send, wr)
	}
	return g
}

// serve sends a message on queue pair i.
func (g *game) serve(i int) error {
	_, err := g.qps[i].PostSend(g.send[i : i+1])
	g.pending[i] = sendWork | recvWork
	return err
}

// take takes a completion, and sends when its queue pair has nothing more to
// wait for.
func (g *game) take(wc *verbs.WC) error {
	if err := wc.Err(); err != nil {
		return fmt.Errorf("failed status %s (%d): %w", wc.Status.Description(), wc.Status, err)
	}
	i := g.index[wc.QPN]
	if wc.Opcode.IsRecv() {
		g.received++
		g.pending[i] &^= recvWork
		if int(wc.ByteLen) != g.room+g.Size {
			return fmt.Errorf("a message of %d bytes came, and they are %d; give both sides the same -s", int(wc.ByteLen)-g.room, g.Size)
		}
		if g.posted--; g.posted <= g.NumQP {
			if err := g.postReceives(g.RxDepth - g.posted); err != nil {
				return err
			}
			g.posted = g.RxDepth
		}
	} else {
		g.sent++
		g.pending[i] &^= sendWork
	}
	if g.sent < g.Iters && g.pending[i] == 0 {
		return g.serve(i)
	}
	return nil
}

// wait returns at least one completion.
func (e *end) wait(ctx context.Context, wcs []verbs.WC) (int, error) {
	if e.Events {
		n, err := e.cq.PollWait(ctx, wcs)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return n, err
	}
	for {
		// Looks of all calls count: on a fast path each call may find something soon.
		if e.looks++; e.looks%glance == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if n, err := e.cq.Poll(wcs); n > 0 || err != nil {
			return n, err
		}
	}
}

// ErrIdle says that messages stopped coming.
var ErrIdle = watch.ErrIdle

// explain tells what has happened until a wait ended.
func (g *game) explain(err error) error {
	if !errors.Is(err, ErrIdle) && !errors.Is(err, context.Canceled) {
		return err
	}
	so := fmt.Sprintf("%d of %d messages sent, %d received", g.sent, g.Iters, g.received)
	if !errors.Is(err, ErrIdle) {
		return fmt.Errorf("%w: %s", err, so)
	}
	switch {
	case g.sent == 0 && g.received == 0:
		so += "; is the peer's address reachable on UDP port 4791?"
	case g.Kind == UC || g.Kind == UD:
		so += "; what gets lost on the way is not repeated"
	}
	return fmt.Errorf("%w since %v: %s", err, g.Idle, so)
}
