package rc

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/rankwire"
	"github.com/softrnic/softrnic/verbs"
)

// incoming holds the connections that other ranks have made. The newest one of each rank is current.
type incoming struct {
	mu   sync.Mutex
	byQP map[uint32]remoteQP
	qps  map[int]verbs.QP

	retired    []verbs.QP // disconnected, but their completions may still be in the CQ
	hasRetired atomic.Bool
}

// remoteQP is the rank at the other end of a queue pair.
type remoteQP struct {
	rank int
	qp   verbs.QP
}

// rankOf returns the rank at the other end of a queue pair, which may be retired.
func (in *incoming) rankOf(qpn uint32) (rank int, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	c, ok := in.byQP[qpn]
	return c.rank, ok
}

// addQP records a rank's queue pair, and returns the previous one, for retireQP.
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

// retireQP marks a queue pair for destroyRetired. Its completions in the CQ still count: a busy rank may poll
// signals of the old connection long after the peer has reconnected, and destroying the queue pair would drop
// them.
func (in *incoming) retireQP(rank int, qp verbs.QP) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.qps[rank] == qp {
		delete(in.qps, rank)
	}
	in.retired = append(in.retired, qp)
	in.hasRetired.Store(true)
}

// retiredCount returns the number of retired queue pairs. After the caller has then drained the CQ, it may
// destroy that many.
func (in *incoming) retiredCount() int {
	if !in.hasRetired.Load() {
		return 0
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.retired)
}

// destroyRetired destroys the first k retired queue pairs.
func (in *incoming) destroyRetired(k int) {
	if k == 0 {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, qp := range in.retired[:k] {
		_ = qp.Close()
	}
	for _, qp := range in.retired[:k] {
		if in.byQP[qp.Num()].qp == qp { // otherwise the number has been reused
			delete(in.byQP, qp.Num())
		}
	}
	in.retired = append([]verbs.QP(nil), in.retired[k:]...)
	in.hasRetired.Store(len(in.retired) > 0)
}

// acceptConn accepts one connection. Afterwards the adapter alone serves its operations.
func (n *Net) acceptConn(t rankwire.Ticket, r *cm.Request) {
	rank := t.Rank
	qp, err := n.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: n.cq, RecvCQ: n.cq, SRQ: n.srq,
		Cap: verbs.QPCap{MaxSendWR: 1, MaxSendSGE: 1}})
	if err != nil {
		_ = r.Reject(cm.ConsumerReject, []byte(err.Error()))
		return
	}
	if old := n.incoming.addQP(rank, qp); old != nil { // the peer has reconnected after a refused operation
		n.incoming.retireQP(rank, old)
	}
	conn, err := r.Accept(n.ctx, qp, cm.AcceptOptions{ConnectOptions: n.o.Connect, PrivateData: n.card})
	retire := func() { n.incoming.retireQP(rank, qp) }
	if err != nil {
		retire()
		return
	}
	conn.AfterDone(retire)
}

// destroyAll destroys all incoming queue pairs.
func (in *incoming) destroyAll() (err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, qp := range in.qps {
		err = errors.Join(err, qp.Close())
	}
	for _, qp := range in.retired {
		err = errors.Join(err, qp.Close())
	}
	return err
}
