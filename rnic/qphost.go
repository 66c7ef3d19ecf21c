package rnic

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A qpHost is a queuePair as a qp.Host.
type qpHost queuePair

var _ qp.Host = (*qpHost)(nil)

// Complete implements qp.Host. The shard's lock is held.
func (h *qpHost) Complete(wc verbs.WC, solicited bool) {
	q := (*queuePair)(h)
	if wc.Status != verbs.WCSuccess {
		q.logFailure(&wc)
	}
	c := q.sendCQ
	if wc.Opcode.IsRecv() {
		c = q.recvCQ
	}
	if !c.pushCompletion(&wc, solicited) {
		q.overran = true
	}
}

// failOverrun moves a queue pair whose completions were lost to the error
// state. The shard's lock is held.
func (q *queuePair) failOverrun(now reliability.Time) {
	q.overran = false
	if s := q.core.State(); s == verbs.StateReset || s == verbs.StateErr {
		return
	}
	_ = q.core.Modify(now, &verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) // always allowed
	q.raiseEvent(verbs.EventQPFatal, &verbs.Failure{
		Event: "a completion was not written: the completion queue overran",
		Cause: "create one with the depth of all queues that use it together, and poll more often",
	})
}

// Event implements qp.Host. The shard's lock is held.
func (h *qpHost) Event(t verbs.EventType, failure *verbs.Failure) {
	(*queuePair)(h).raiseEvent(t, failure)
}

// Path implements qp.Host.
func (h *qpHost) Path(ah verbs.AH) *wire.Path {
	if a, ok := ah.(*addressHandle); ok {
		return &a.path
	}
	return nil
}

// RDMAPeer implements qp.Host.
func (h *qpHost) RDMAPeer(ah verbs.AH) *qp.Peer {
	if p, ok := ah.(*peerHandle); ok && p != nil {
		return p.peer
	}
	return nil
}

func (q *queuePair) raiseEvent(t verbs.EventType, failure *verbs.Failure) {
	q.dev.raiseEvent(verbs.AsyncEvent{Type: t, QP: q, Failure: failure})
}

// logFailure logs the first failure of a queue pair with its flight recorder at
// level debug: the program gets the failure as a completion.
func (q *queuePair) logFailure(wc *verbs.WC) {
	if q.failureLogged || wc.Status == verbs.WCWRFlushErr || q.datagram && wc.Opcode != verbs.WCSend && !wc.Opcode.IsRecv() {
		return // RDMA of a UD queue pair fails alone
	}
	q.failureLogged = true
	err := wc.Err()
	q.dev.deferLog(func(log *slog.Logger) {
		if log.Enabled(context.Background(), slog.LevelDebug) {
			q.shard.mu.Lock()
			history := recordLog(q.records())
			q.shard.mu.Unlock()
			log.Debug("queue pair failed", "device", q.dev.name, "qp", fmt.Sprintf("0x%x", q.num), "cause", err, "history", history)
		}
	})
}

// A recordLog formats a flight recorder for a log.
type recordLog []Record

func (l recordLog) String() string {
	var b []byte
	for _, e := range l {
		b = fmt.Appendf(b, "%.3fms %s; ", float64(e.At)/1e6, e.Text)
	}
	return string(b)
}
