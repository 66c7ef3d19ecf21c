package perftest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// traffic is one bandwidth run: this side sends, receives, or both.
type traffic struct {
	*end
	ctx   context.Context
	alive *watch.Watch
	clock
	size      int
	lanes     []lane // one a queue pair
	wcs       []verbs.WC
	looks     int
	total     int64 // messages each way; not if timed
	sent      int64
	completed int64
	received  int64
	allSent   atomic.Bool
	phases
	counted int64 // messages in the time that counts
	lossy   bool  // nothing repeats what gets lost
	lost    int64

	// When each message was posted and, if it was signaled, completed; for the
	// peak. Otherwise the first and the last only.
	posted, done []int64
	first, last  int64

	pace pace
	tell func(flow) // gets a report whenever Duration is over, if Infinite
}

// lane is a queue pair in a run.
type lane struct {
	qp       verbs.QP
	wrs      []verbs.SendWR
	rwrs     []verbs.RecvWR
	sent     uint64 // messages
	signaled uint64 // up to the last one that asks for a completion
	done     uint64
	spare    int    // receives that may be posted anew
	given    uint64 // receives posted
}

// laneShift divides WRID into the lane and the number of the message in it.
const laneShift = 40

// newTraffic prepares a run of messages of a size, with receives posted.
func (e *end) newTraffic(size int) (*traffic, error) {
	t := &traffic{end: e, clock: newClock(), size: size, wcs: make([]verbs.WC, e.PollBatch), phases: e.phases()}
	t.lossy = e.Connection != verbs.RC
	if !e.timed {
		t.total = int64(e.Iters) * int64(e.QPs)
	}
	if !e.noPeak {
		t.posted, t.done = make([]int64, t.total), make([]int64, t.total)
	}
	t.pace = e.newPace(size)
	for i, qp := range e.qps {
		l := lane{qp: qp}
		if e.sends {
			l.wrs = e.sendRequests(i, size)
		}
		if e.receives {
			l.rwrs = make([]verbs.RecvWR, e.RecvPostList)
			for j := range l.rwrs {
				l.rwrs[j].WRID, l.rwrs[j].SGList = uint64(i)<<laneShift, make([]verbs.SGE, 1)
			}
		}
		t.lanes = append(t.lanes, l)
	}
	if e.receives {
		return t, t.postFirst()
	}
	return t, nil
}

// sendRequests are the requests of one list on queue pair i; what changes from
// message to message is not set.
func (e *end) sendRequests(i, size int) []verbs.SendWR {
	wrs := make([]verbs.SendWR, e.PostList)
	for j := range wrs {
		wr := &wrs[j]
		wr.RKey, wr.RemoteAddr = e.theirs[i].RKey, e.theirs[i].VAddr
		switch e.Test.Verb {
		case Send:
			wr.Opcode = verbs.WRSend
			if e.WithImm {
				wr.Opcode = verbs.WRSendWithImm
			}
			if e.Connection == verbs.UD {
				wr.AH, wr.RemoteQPN, wr.RemoteQKey = e.ahs[i], e.theirs[i].QPN, qkey
				if e.RDMACM {
					wr.RemoteQPN, wr.RemoteQKey = e.udPeers[i].qpn, e.udPeers[i].qkey
				}
			}
		case Write:
			wr.Opcode = verbs.WRRDMAWrite
			if e.WithImm {
				wr.Opcode = verbs.WRRDMAWriteWithImm
			}
		case Read:
			wr.Opcode = verbs.WRRDMARead
		case Atomic:
			wr.Opcode, wr.CompareAdd = verbs.WRAtomicFetchAdd, addend
			if e.Atomic == CmpAndSwap {
				wr.Opcode, wr.CompareAdd = verbs.WRAtomicCmpSwap, 0
			}
		}
		if size <= e.inline {
			wr.Flags = verbs.SendInline
		} else {
			wr.SGList = make([]verbs.SGE, 1)
		}
	}
	return wrs
}

// load sets request wr to message n of queue pair i.
func (e *end) load(wr *verbs.SendWR, i int, n uint64, size int) {
	by, slots := e.steps(size)
	at := e.areas[i]
	off := int(n%uint64(slots)) * by
	if wr.Flags&verbs.SendInline != 0 {
		wr.InlineData = at.mr.Bytes()[at.send+off : at.send+off+size]
	} else {
		wr.SGList[0] = at.mr.SGE(at.send+off, size)
	}
	wr.RemoteAddr = e.theirs[i].VAddr + uint64(off)
	wr.WRID = uint64(i)<<laneShift | n + 1
}

// run moves all messages.
func (t *traffic) run(ctx context.Context, alive *watch.Watch) error {
	t.ctx, t.alive = ctx, alive
	now := t.now()
	if t.client || !t.receives {
		t.begin(now)
	}
	for {
		now = t.now()
		if t.finished(now) {
			break
		}
		if t.Infinite && t.over(now) {
			t.tell(flow{int64(t.size), t.counted, 0, t.from, now})
			t.counted = 0
			t.again(now)
		}
		posted, err := t.push(now)
		if err != nil {
			return err
		}
		if err := t.take(!posted && t.Events && !t.pace.on); errors.Is(err, errLost) {
			t.lost = t.total - t.received
			break
		} else if err != nil {
			return t.explain(err)
		}
	}
	if !t.lossy || t.lost == 0 {
		t.last = max(t.last, now)
	}
	return nil
}

// finished reports whether the run is.
func (t *traffic) finished(now int64) bool {
	if t.timed {
		return !t.Infinite && t.over(now) && t.drained()
	}
	return (!t.sends || t.completed == t.total) && (!t.receives || t.received == t.total)
}

// drained reports whether everything that is going to complete has.
func (t *traffic) drained() bool {
	for i := range t.lanes {
		if t.lanes[i].done < t.lanes[i].signaled {
			return false
		}
	}
	return true
}

// push posts on all queue pairs what may be posted.
func (t *traffic) push(now int64) (posted bool, err error) {
	if !t.sends || !t.begun || t.timed && t.over(now) {
		return false, nil
	}
	for i := range t.lanes {
		for l := &t.lanes[i]; t.mayPost(l) && t.pace.may(t.now); {
			if err := t.post(i, l); err != nil {
				return false, err
			}
			posted = true
		}
	}
	return posted, nil
}

func (t *traffic) mayPost(l *lane) bool {
	return (t.timed || l.sent < uint64(t.Iters)) && l.sent-l.done+uint64(t.PostList) <= uint64(t.txDepth)
}

// post posts one list.
func (t *traffic) post(i int, l *lane) error {
	for j := range l.wrs {
		wr, n := &l.wrs[j], l.sent+uint64(j)
		t.load(wr, i, n, t.size)
		wr.Flags &^= verbs.SendSignaled
		if (n+1)%uint64(t.cqMod) == 0 || !t.timed && n+1 == uint64(t.Iters) {
			wr.Flags |= verbs.SendSignaled
			l.signaled = n + 1
		}
	}
	if t.sent == 0 || t.posted != nil {
		now := t.now()
		if t.sent == 0 {
			t.first = now
		}
		if t.posted != nil {
			for j := range l.wrs {
				t.posted[t.sent+int64(j)] = now
			}
		}
	}
	if _, err := l.qp.PostSend(l.wrs); err != nil {
		return err
	}
	l.sent += uint64(t.PostList)
	t.sent += int64(t.PostList)
	t.pace.posted(t.PostList)
	if t.sent == t.total {
		t.allSent.Store(true)
	}
	return nil
}

// take takes completions; with block it sleeps until there is one.
func (t *traffic) take(block bool) error {
	n, err := 0, error(nil)
	if block {
		n, err = t.cq.PollWait(t.ctx, t.wcs)
	} else {
		n, err = t.cq.Poll(t.wcs)
	}
	// Without a peer to wait for, as with UC and UD, no look may ever be empty.
	if t.looks++; (n > 0 || t.looks%glance == 0 || err != nil) && t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	if n == 0 {
		return err
	}
	t.alive.Beat()
	now := t.now()
	for i := range t.wcs[:n] {
		if err := t.complete(&t.wcs[i], now); err != nil {
			return err
		}
	}
	return nil
}

// glance is the maximum number of empty polls between two checks of the context.
const glance = 1 << 10

// complete handles a completion.
func (t *traffic) complete(wc *verbs.WC, now int64) error {
	if err := wc.Err(); err != nil {
		return fmt.Errorf("completion with error: failed status %d: %w", wc.Status, err)
	}
	i := int(wc.WRID >> laneShift)
	l := &t.lanes[i]
	if wc.Opcode.IsRecv() {
		return t.receive(i, wc, now)
	}
	n := int64(wc.WRID&(1<<laneShift-1) - l.done)
	l.done += uint64(n)
	t.completed += n
	if t.done != nil {
		t.done[t.completed-1] = now
	}
	if t.timed && t.counts(now) {
		t.counted += n
	}
	t.last = now
	return nil
}

// explain tells what has happened until a wait ended.
func (t *traffic) explain(err error) error {
	if !errors.Is(err, watch.ErrIdle) && !errors.Is(err, context.Canceled) {
		return err
	}
	so := fmt.Sprintf("%d messages posted, %d completed, %d received", t.sent, t.completed, t.received)
	if !t.timed {
		so += fmt.Sprintf(", of %d", t.total)
	}
	return fmt.Errorf("%w: %s", err, so)
}
