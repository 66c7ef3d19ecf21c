package perftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// postFirst posts as many receives as the queues hold, but no more than
// messages will come.
func (t *traffic) postFirst() error {
	each := t.rxDepth / t.RecvPostList
	if t.srq != nil {
		each = max(1, each/t.QPs)
	}
	for i := range t.lanes {
		for range each {
			if err := t.giveBack(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveBack posts a list of receives on queue pair i.
func (t *traffic) giveBack(i int) (err error) {
	by, slots := t.receiveSteps(t.size)
	l, at, front := &t.lanes[i], t.areas[i], 0
	if t.Connection == verbs.UD {
		front = grhLen
	}
	for j := range l.rwrs {
		off := int((l.given+uint64(j))%uint64(slots)) * by
		l.rwrs[j].SGList[0] = at.mr.SGE(at.recv+off-front, t.size+front)
	}
	if t.srq != nil {
		_, err = t.srq.PostRecv(l.rwrs)
	} else {
		_, err = l.qp.PostRecv(l.rwrs)
	}
	l.given += uint64(len(l.rwrs))
	return err
}

// receive handles a message that has come into a receive of lane i.
func (t *traffic) receive(i int, wc *verbs.WC, now int64) error {
	if t.received == 0 {
		t.begin(now)
		if !t.sends {
			t.first = now
		}
	}
	if err := t.checkLength(t.size, wc); err != nil {
		return err
	}
	t.received++
	t.last = now
	if t.timed && t.counts(now) {
		t.counted++
	}
	l := &t.lanes[i]
	if l.spare++; l.spare >= t.RecvPostList && (t.timed || l.given+uint64(t.RecvPostList) <= uint64(t.Iters)) {
		l.spare -= t.RecvPostList
		return t.giveBack(i)
	}
	return nil
}

// checkLength refuses messages of another size.
func (p *plan) checkLength(size int, wc *verbs.WC) error {
	got := int(wc.ByteLen)
	if p.Connection == verbs.UD {
		got -= grhLen
	}
	if got != size {
		return fmt.Errorf("a message of %d bytes came, and they are %d; give both sides the same -s", got, size)
	}
	return nil
}

// errLost says that the rest of the messages got lost.
var errLost = errors.New("messages got lost")

// grace is how long a message of UC or UD may be on its way.
const grace = 250 * time.Millisecond

// watchLoss ends ctx with errLost when no more messages of UC or UD are going
// to come: the peer is through, or we are if both send, and none came for a
// while.
func (t *traffic) watchLoss(ctx context.Context, alive *watch.Watch, through <-chan struct{}) (context.Context, func()) {
	if !t.lossy || !t.receives || t.timed {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(grace)
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
