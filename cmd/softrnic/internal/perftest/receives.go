package perftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// postInitialReceives posts as many receives as the queues hold, up to the number of messages.
func (t *bandwidthRun) postInitialReceives() error {
	each := t.rxDepth / t.RecvPostList
	if t.srq != nil {
		each = max(1, each/t.QPs)
	}
	for i := range t.qps {
		for range each {
			if err := t.postReceives(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// postReceives posts a list of receives on queue pair i.
func (t *bandwidthRun) postReceives(i int) (err error) {
	by, slots := t.receiveSlots(t.size)
	l, at, front := &t.qps[i], t.areas[i], 0
	if t.Connection == verbs.UD {
		front = grhLen
	}
	for j := range l.rwrs {
		off := int((l.recvPosted+uint64(j))%uint64(slots)) * by
		l.rwrs[j].SGList[0] = at.mr.SGE(at.recv+off-front, t.size+front)
	}
	if t.srq != nil {
		_, err = t.srq.PostRecv(l.rwrs)
	} else {
		_, err = l.qp.PostRecv(l.rwrs)
	}
	l.recvPosted += uint64(len(l.rwrs))
	return err
}

// handleReceive handles a message received on queue pair i.
func (t *bandwidthRun) handleReceive(i int, wc *verbs.WC, now int64) error {
	if t.received == 0 {
		t.startWindow(now)
		if !t.sends {
			t.first = now
		}
	}
	if err := t.checkLength(t.size, wc); err != nil {
		return err
	}
	t.received++
	t.last = now
	if t.timed && t.inWindow(now) {
		t.countedMessages++
	}
	l := &t.qps[i]
	if l.toRepost++; l.toRepost >= t.RecvPostList && (t.timed || l.recvPosted+uint64(t.RecvPostList) <= uint64(t.Iters)) {
		l.toRepost -= t.RecvPostList
		return t.postReceives(i)
	}
	return nil
}

// receiveUntilPeerEnds receives after the end of a timed run until the peer's next message a has
// been read. The peer's run may have started later, and the messages that it still sends need
// receives, without which its queue pair would retry forever. A peer that has sent a may disconnect
// before a has been read, so a failed completion counts only if a does not arrive.
func (t *bandwidthRun) receiveUntilPeerEnds(ctx context.Context, a *pendingRead) error {
	t.ctx = ctx
	for {
		select {
		case <-a.done:
			return nil
		default:
		}
		err := t.handleCompletions(false)
		if err == nil {
			continue
		}
		select {
		case <-a.done:
			if a.err == nil {
				return nil
			}
		case <-ctx.Done():
		}
		return err
	}
}

// checkLength returns an error for a message of another size.
func (p *plan) checkLength(size int, wc *verbs.WC) error {
	got := int(wc.ByteLen)
	if p.Connection == verbs.UD {
		got -= grhLen
	}
	if got != size {
		return fmt.Errorf("message of %d bytes received, want %d; give both sides the same -s", got, size)
	}
	return nil
}

// errLost reports that the remaining messages were lost.
var errLost = errors.New("messages were lost")

// lossGrace is the maximum delay of a message of UC or UD.
const lossGrace = 250 * time.Millisecond

// watchLoss cancels ctx with errLost when no more messages of UC or UD will come: the peer has
// finished, or this side of a bidirectional test has, and none came for lossGrace.
func (t *bandwidthRun) watchLoss(ctx context.Context, alive *watch.Watch, through <-chan struct{}) (context.Context, func()) {
	if !t.lossy || !t.receives || t.timed {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(lossGrace)
		defer tick.Stop()
		for before := alive.Beats(); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			select {
			case <-through:
			default:
				if !t.Bidirectional || !t.allSent.Load() {
					before = alive.Beats()
					continue
				}
			}
			now := alive.Beats()
			if now == before {
				cancel(errLost)
			}
			before = now
		}
	}()
	return ctx, func() { cancel(nil) }
}
