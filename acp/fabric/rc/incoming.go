package rc

import (
	"errors"
	"sync"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// incoming are the connections that other ranks have made: one each, the newest.
type incoming struct {
	mu   sync.Mutex
	byQP map[uint32]int // the rank
	qps  map[int]verbs.QP
}

// rank is who is at the other end of a queue pair.
func (in *incoming) rank(qpn uint32) (rank int, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	rank, ok = in.byQP[qpn]
	return rank, ok
}

// add notes a rank's queue pair, and returns the one that it had before.
func (in *incoming) add(rank int, qp verbs.QP) (old verbs.QP) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.byQP == nil {
		in.byQP, in.qps = map[uint32]int{}, map[int]verbs.QP{}
	}
	if old = in.qps[rank]; old != nil {
		delete(in.byQP, old.Num())
	}
	in.byQP[qp.Num()], in.qps[rank] = rank, qp
	return old
}

// remove forgets a queue pair.
func (in *incoming) remove(rank int, qp verbs.QP) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.byQP, qp.Num())
	if in.qps[rank] == qp {
		delete(in.qps, rank)
	}
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
		_ = old.Destroy()
	}
	conn, err := r.Accept(n.ctx, qp, cm.AcceptOptions{ConnectOptions: n.o.Connect, PrivateData: n.card})
	gone := func() {
		n.in.remove(rank, qp)
		_ = qp.Destroy()
	}
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
	return err
}
