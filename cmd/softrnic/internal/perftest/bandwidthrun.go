package perftest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// A bandwidthRun measures the bandwidth of one message size. This side sends, receives, or both.
type bandwidthRun struct {
	*endpoint
	ctx   context.Context
	alive *watch.Watch
	clock
	size      int
	qps       []runQP // one a queue pair
	wcs       []verbs.WC
	polls     int
	total     int64 // messages each way; not if timed
	sent      int64
	completed int64
	received  int64
	allSent   atomic.Bool
	measureWindow
	countedMessages int64 // messages within the measurement window
	lossy           bool  // the transport does not retransmit
	lost            int64

	// Times at which each message was posted and, if signaled, completed, for the
	// peak. Without peak only first and last are set.
	posted, done []int64
	first, last  int64

	pacer  pacer
	report func(transfer) // is called at the end of each Duration, if Infinite
}

// A runQP is the state of a queue pair in a run.
type runQP struct {
	qp         verbs.QP
	wrs        []verbs.SendWR
	rwrs       []verbs.RecvWR
	sent       uint64 // messages
	signaled   uint64 // number of the last signaled message
	done       uint64
	toRepost   int    // consumed receives to repost
	recvPosted uint64 // receives posted
}

// qpShift splits a WRID into the index of the queue pair and the number of the message.
const qpShift = 40

// newBandwidthRun prepares a run of messages of a size and posts the receives.
func (e *endpoint) newBandwidthRun(size int) (*bandwidthRun, error) {
	t := &bandwidthRun{endpoint: e, clock: newClock(), size: size, wcs: make([]verbs.WC, e.PollBatch), measureWindow: e.newWindow()}
	t.lossy = e.Connection != verbs.RC
	if !e.timed {
		t.total = int64(e.Iters) * int64(e.QPs)
	}
	if !e.noPeak {
		t.posted, t.done = make([]int64, t.total), make([]int64, t.total)
	}
	t.pacer = e.newPacer(size)
	for i, qp := range e.qps {
		l := runQP{qp: qp}
		if e.sends {
			l.wrs = e.sendRequests(i, size)
		}
		if e.receives {
			l.rwrs = make([]verbs.RecvWR, e.RecvPostList)
			for j := range l.rwrs {
				l.rwrs[j].WRID, l.rwrs[j].SGList = uint64(i)<<qpShift, make([]verbs.SGE, 1)
			}
		}
		t.qps = append(t.qps, l)
	}
	if e.receives {
		return t, t.postInitialReceives()
	}
	return t, nil
}

// sendRequests returns the requests of one list on queue pair i, without the fields that differ by
// message.
func (e *endpoint) sendRequests(i, size int) []verbs.SendWR {
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

// setRequest sets the fields of wr for message n of queue pair i.
func (e *endpoint) setRequest(wr *verbs.SendWR, i int, n uint64, size int) {
	by, slots := e.messageSlots(size)
	at := e.areas[i]
	off := int(n%uint64(slots)) * by
	if wr.Flags&verbs.SendInline != 0 {
		wr.InlineData = at.mr.Bytes()[at.send+off : at.send+off+size]
	} else {
		wr.SGList[0] = at.mr.SGE(at.send+off, size)
	}
	wr.RemoteAddr = e.theirs[i].VAddr + uint64(off)
	wr.WRID = uint64(i)<<qpShift | n + 1
}

// run moves all messages.
func (t *bandwidthRun) run(ctx context.Context, alive *watch.Watch) error {
	t.ctx, t.alive = ctx, alive
	now := t.now()
	if t.client || !t.receives {
		t.startWindow(now)
	}
	for {
		now = t.now()
		if t.isDone(now) {
			break
		}
		if t.Infinite && t.expired(now) {
			t.report(transfer{int64(t.size), t.countedMessages, 0, t.from, now})
			t.countedMessages = 0
			t.restartWindow(now)
		}
		posted, err := t.postAll(now)
		if err != nil {
			return err
		}
		if err := t.handleCompletions(!posted && t.Events && !t.pacer.enabled); errors.Is(err, errLost) {
			t.lost = t.total - t.received
			break
		} else if err != nil {
			return t.withProgress(err)
		}
	}
	if !t.lossy || t.lost == 0 {
		t.last = max(t.last, now)
	}
	return nil
}

// isDone reports whether the run has ended.
func (t *bandwidthRun) isDone(now int64) bool {
	if t.timed {
		return !t.Infinite && t.expired(now) && t.allCompleted()
	}
	return (!t.sends || t.completed == t.total) && (!t.receives || t.received == t.total)
}

// allCompleted reports whether all signaled messages have completed.
func (t *bandwidthRun) allCompleted() bool {
	for i := range t.qps {
		if t.qps[i].done < t.qps[i].signaled {
			return false
		}
	}
	return true
}

// postAll posts on every queue pair as many requests as the depth and the rate allow.
func (t *bandwidthRun) postAll(now int64) (posted bool, err error) {
	if !t.sends || !t.started || t.timed && t.expired(now) {
		return false, nil
	}
	for i := range t.qps {
		for l := &t.qps[i]; t.mayPost(l) && t.pacer.allow(t.now); {
			if err := t.postList(i, l); err != nil {
				return false, err
			}
			posted = true
		}
	}
	return posted, nil
}

func (t *bandwidthRun) mayPost(l *runQP) bool {
	return (t.timed || l.sent < uint64(t.Iters)) && l.sent-l.done+uint64(t.PostList) <= uint64(t.txDepth)
}

// postList posts one list of requests on queue pair i.
func (t *bandwidthRun) postList(i int, l *runQP) error {
	for j := range l.wrs {
		wr, n := &l.wrs[j], l.sent+uint64(j)
		t.setRequest(wr, i, n, t.size)
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
	t.pacer.consume(t.PostList)
	if t.sent == t.total {
		t.allSent.Store(true)
	}
	return nil
}

// handleCompletions polls the completion queue; with block it sleeps until a completion comes.
func (t *bandwidthRun) handleCompletions(block bool) error {
	n, err := 0, error(nil)
	if block {
		n, err = t.cq.PollWait(t.ctx, t.wcs)
	} else {
		n, err = t.cq.Poll(t.wcs)
	}
	// Without acknowledgements, as with UC and UD, every poll may find a completion.
	if t.polls++; (n > 0 || t.polls%contextCheckPolls == 0 || err != nil) && t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	if n == 0 {
		return err
	}
	t.alive.Beat()
	now := t.now()
	for i := range t.wcs[:n] {
		if err := t.handleCompletion(&t.wcs[i], now); err != nil {
			return err
		}
	}
	return nil
}

// contextCheckPolls is the number of polls between two checks of the context.
const contextCheckPolls = 1 << 10

// handleCompletion handles one completion.
func (t *bandwidthRun) handleCompletion(wc *verbs.WC, now int64) error {
	if err := wc.Err(); err != nil {
		return fmt.Errorf("completion with error: failed status %d: %w", wc.Status, err)
	}
	i := int(wc.WRID >> qpShift)
	l := &t.qps[i]
	if wc.Opcode.IsRecv() {
		return t.handleReceive(i, wc, now)
	}
	n := int64(wc.WRID&(1<<qpShift-1) - l.done)
	l.done += uint64(n)
	t.completed += n
	if t.done != nil {
		t.done[t.completed-1] = now
	}
	if t.timed && t.inWindow(now) {
		t.countedMessages += n
	}
	t.last = now
	return nil
}

// withProgress adds the message counts to the error that ended a wait.
func (t *bandwidthRun) withProgress(err error) error {
	if !errors.Is(err, watch.ErrIdle) && !errors.Is(err, context.Canceled) {
		return err
	}
	so := fmt.Sprintf("%d messages posted, %d completed, %d received", t.sent, t.completed, t.received)
	if !t.timed {
		so += fmt.Sprintf(", of %d", t.total)
	}
	return fmt.Errorf("%w: %s", err, so)
}

// warmUp sends as many messages as the queues hold on each queue pair before the test.
func (r *runner) warmUp(ctx context.Context, alive *watch.Watch, size int) error {
	o, p, e := *r.Options, *r.plan, *r.endpoint
	o.Iters = max(r.txDepth, r.PostList) / r.PostList * r.PostList
	p.Options, p.noPeak, p.timed, e.plan = &o, true, false, &p
	t, err := e.newBandwidthRun(size)
	if err != nil {
		return err
	}
	return t.run(ctx, alive)
}
