package rnic

import (
	"fmt"
	"time"
)

// waitCheckInterval is the interval of the checks of waiters; a waiter that
// cannot be satisfied is reported after one to two intervals.
const waitCheckInterval = time.Second

// checkWaiters detects waiters on completion queues into which nothing can
// complete. Its timer runs only while there are waiters, and it costs a call of
// Wait or PollWait two atomic operations.
func (d *Device) checkWaiters() {
	d.waitWatch.Store(false) // first: a waiter that is missed below restarts the watch
	waiting, stalled := false, map[*completionQueue]*completionSources{}
	d.mu.Lock()
	for c := range d.cqs {
		if c.blockedCalls.Load() > 0 {
			waiting = true
			if c.isStalled() && c.hint.Load() == nil {
				stalled[c] = &completionSources{}
			}
		}
	}
	d.mu.Unlock()
	d.findSources(stalled)
	for c, sources := range stalled {
		if cause, grave := sources.whyStuck(c); cause != "" {
			d.reportStuck(c, cause, grave)
		}
	}
	if waiting && !d.unusable.Load() {
		d.startWaitWatch()
	}
}

// startWaitWatch makes checkWaiters run after waitCheckInterval, unless the
// timer is running.
func (d *Device) startWaitWatch() {
	if !d.waitWatch.Load() && d.waitWatch.CompareAndSwap(false, true) {
		time.AfterFunc(waitCheckInterval, d.checkWaiters)
	}
}

// isStalled reports whether nothing has completed since its last call.
func (c *completionQueue) isStalled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := c.pushed == c.pushedAtCheck
	c.pushedAtCheck = c.pushed
	return same && c.queued.Len() == 0
}

// completionSources are the queue pairs that report to a completion queue.
type completionSources struct {
	sends, receives int    // queue pairs whose send or receive queue reports to it
	unsignaled      uint64 // requests that have succeeded without a completion
	canComplete     bool   // without another call of the program
}

// findSources adds the queue pairs to the queues of a map, in one pass over all: with a queue and
// a waiter for each of many connections, a pass for each would take their number squared.
func (d *Device) findSources(of map[*completionQueue]*completionSources) {
	if len(of) == 0 {
		return
	}
	d.qps.forEach(func(q *queuePair) {
		sending, receiving := of[q.sendCQ], of[q.recvCQ]
		if sending == nil && receiving == nil {
			return
		}
		q.shard.mu.Lock()
		defer q.shard.mu.Unlock()
		if q.closed {
			return
		}
		send, recv := q.core.CanComplete()
		if q.srq != nil {
			recv = recv || q.srq.postedCount() > 0
		}
		if sending != nil {
			sending.sends++
			sending.unsignaled += q.core.Counters().Unsignaled
			sending.canComplete = sending.canComplete || send
		}
		if receiving != nil {
			receiving.receives++
			receiving.canComplete = receiving.canComplete || recv
		}
	})
}

// whyStuck returns the reason that nothing can complete into c without another call of the
// program, or "". The reason is grave if it is likely a mistake: requests were not signaled, or a
// queue that receives report to never got a completion. Otherwise the waiter may serve requests
// that other goroutines will post.
func (x *completionSources) whyStuck(c *completionQueue) (cause string, grave bool) {
	c.mu.Lock()
	unused := c.pushed == 0
	c.mu.Unlock()
	switch {
	case x.canComplete:
		return "", false
	case x.sends+x.receives == 0:
		return "no queue pair uses the queue", false
	case x.unsignaled > 0:
		return fmt.Sprintf("nothing is outstanding; %d requests have succeeded without a completion, because they are not signaled; "+
			"set SendSignaled, or create the queue pair without SelectiveSignaling", x.unsignaled), true
	case x.receives == 0:
		return "no request is outstanding", false
	case x.sends == 0:
		return "no receive is posted", unused
	default:
		return "no request is outstanding and no receive is posted", unused
	}
}

// reportStuck logs, once per queue, that its waiters cannot be satisfied, and
// notes it in the flight recorders of its queue pairs. It is a warning if
// grave.
func (d *Device) reportStuck(c *completionQueue, cause string, grave bool) {
	if !c.hint.CompareAndSwap(nil, &cause) {
		return
	}
	d.qps.forEach(func(q *queuePair) {
		if q.sendCQ == c || q.recvCQ == c {
			q.shard.mu.Lock()
			q.core.RecordWaiter(d.now())
			q.shard.mu.Unlock()
		}
	})
	log := d.log.Info
	if grave {
		log = d.log.Warn
	}
	log("a goroutine waits on a completion queue into which nothing can complete", "device", d.name, "cq", c.num, "cause", cause)
}
