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
	byQP map[uint32]remoteQP
	qps  map[int]verbs.QP

	retired    []verbs.QP // destroyed, but what has come on them may still have to be looked at
	hasRetired atomic.Bool
}

// remoteQP is who is at the other end of a queue pair.
type remoteQP struct {
	rank int
	qp   verbs.QP
}

// rankOf is who is at the other end of a queue pair, or was.
func (in *incoming) rankOf(qpn uint32) (rank int, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	c, ok := in.byQP[qpn]
	return c.rank, ok
}

// addQP notes a rank's queue pair, and returns the one that it had before, for retire.
func (in *incoming) addQP(rank int, qp verbs.QP) (old verbs.QP) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.byQP == nil {
		in.byQP, in.qps = map[uint32]remoteQP{}, map[int]verbs.QP{}
	}
	old = in.qps[rank]
	in.byQP[qp.Num()], in.qps[rank] = remoteQP{rank, qp}, qp
	return old
}

// retireQP gives up a queue pair, which forget destroys. Signals that have come on it before are still its rank's: a rank
// that is busy polls them when the connection has long been made anew, and with the queue pair they would go.
func (in *incoming) retireQP(rank int, qp verbs.QP) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.qps[rank] == qp {
		delete(in.qps, rank)
	}
	in.retired = append(in.retired, qp)
	in.hasRetired.Store(true)
}

// retiredCount is how many queue pairs are gone: who has looked at all completions after this may forget them.
func (in *incoming) retiredCount() int {
	if !in.hasRetired.Load() {
		return 0
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.retired)
}

// destroyRetired forgets and destroys the first k that are gone.
func (in *incoming) destroyRetired(k int) {
	if k == 0 {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, qp := range in.retired[:k] {
		_ = qp.Destroy()
	}
	for _, qp := range in.retired[:k] {
		if in.byQP[qp.Num()].qp == qp { // else the number is another's by now
			delete(in.byQP, qp.Num())
		}
	}
	in.retired = append([]verbs.QP(nil), in.retired[k:]...)
	in.hasRetired.Store(len(in.retired) > 0)
}

// acceptLoop takes connections of other ranks.
func (n *Net) acceptLoop(l *cm.Listener) {
	for {
		r, err := l.Accept(n.ctx)
		if err != nil {
			return
		}
		n.goroutines.Go(func() { n.acceptConn(r) })
	}
}

// acceptConn takes one. Nothing is done here any more until it ends: its operations are the adapter's.
func (n *Net) acceptConn(r *cm.Request) {
	rank, err := n.parseHello(r.PrivateData())
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
	if old := n.incoming.addQP(rank, qp); old != nil { // made anew after an operation was refused
		n.incoming.retireQP(rank, old)
	}
	conn, err := r.Accept(n.ctx, qp, cm.AcceptOptions{ConnectOptions: n.o.Connect, PrivateData: n.card})
	gone := func() { n.incoming.retireQP(rank, qp) }
	if err != nil {
		gone()
		return
	}
	conn.AfterDone(gone)
}

// destroyAll ends all of them.
func (in *incoming) destroyAll() (err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, qp := range in.qps {
		err = errors.Join(err, qp.Destroy())
	}
	for _, qp := range in.retired {
		err = errors.Join(err, qp.Destroy())
	}
	return err
}
