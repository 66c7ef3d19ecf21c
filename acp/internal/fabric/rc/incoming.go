package rc

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// incoming are the connections that other ranks have made: one each, the newest.
type incoming struct {
	mu   sync.Mutex
	byQP map[uint32]caller
	qps  map[int]verbs.QP

	gone  []verbs.QP // destroyed, but what has come on them may still have to be looked at
	leave atomic.Bool
}

// caller is who is at the other end of a queue pair.
type caller struct {
	rank int
	qp   verbs.QP
}

// rank is who is at the other end of a queue pair, or was.
func (in *incoming) rank(qpn uint32) (rank int, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	c, ok := in.byQP[qpn]
	return c.rank, ok
}

// add notes a rank's queue pair, and returns the one that it had before, for retire.
func (in *incoming) add(rank int, qp verbs.QP) (old verbs.QP) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.byQP == nil {
		in.byQP, in.qps = map[uint32]caller{}, map[int]verbs.QP{}
	}
	old = in.qps[rank]
	in.byQP[qp.Num()], in.qps[rank] = caller{rank, qp}, qp
	return old
}

// retire gives up a queue pair, which forget destroys. Signals that have come on it before are still its rank's: a rank
// that is busy polls them when the connection has long been made anew, and with the queue pair they would go.
func (in *incoming) retire(rank int, qp verbs.QP) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.qps[rank] == qp {
		delete(in.qps, rank)
	}
	in.gone = append(in.gone, qp)
	in.leave.Store(true)
}

// leaving is how many queue pairs are gone: who has looked at all completions after this may forget them.
func (in *incoming) leaving() int {
	if !in.leave.Load() {
		return 0
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.gone)
}

// forget forgets and destroys the first k that are gone.
func (in *incoming) forget(k int) {
	if k == 0 {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, qp := range in.gone[:k] {
		_ = qp.Destroy()
	}
	for _, qp := range in.gone[:k] {
		if in.byQP[qp.Num()].qp == qp { // else the number is another's by now
			delete(in.byQP, qp.Num())
		}
	}
	in.gone = append([]verbs.QP(nil), in.gone[k:]...)
	in.leave.Store(len(in.gone) > 0)
}

// serve takes connections of other ranks.
func (n *Net) serve(l *cm.Listener) {
	for {
		r, err := l.Accept(n.ctx)
		if err != nil {
			return
		}
		n.work.Go(func() { n.accept(r) })
	}
}

// accept takes one. Nothing is done here any more until it ends: its operations are the adapter's.
func (n *Net) accept(r *cm.Request) {
	rank, err := n.check(r.PrivateData())
	if err != nil {
		_ = r.Reject([]byte(err.Error()))
		return
	}
	qp, err := n.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: n.cq, RecvCQ: n.cq, SRQ: n.srq,
		Cap: verbs.QPCap{MaxSendWR: 1, MaxSendSGE: 1}})
	if err != nil {
		_ = r.Reject([]byte(err.Error()))
		return
	}
	if old := n.in.add(rank, qp); old != nil { // made anew after an operation was refused
		n.in.retire(rank, old)
	}
	conn, err := r.Accept(n.ctx, qp, cm.AcceptOptions{ConnectOptions: n.o.Connect, PrivateData: n.card})
	gone := func() { n.in.retire(rank, qp) }
	if err != nil {
		gone()
		return
	}
	conn.AfterDone(gone)
}

// destroy ends all of them.
func (in *incoming) destroy() (err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, qp := range in.qps {
		err = errors.Join(err, qp.Destroy())
	}
	for _, qp := range in.gone {
		err = errors.Join(err, qp.Destroy())
	}
	return err
}
