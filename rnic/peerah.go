package rnic

import (
	"sync/atomic"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

// A peerHandle is a peer of a UD queue pair with RDMA.
type peerHandle struct {
	q      *queuePair
	attr   verbs.AHAttr
	token  uint32
	peer   *qp.Peer
	closed atomic.Bool
}

var (
	_ verbs.PeerAH       = (*peerHandle)(nil)
	_ verbs.DatagramRDMA = (*queuePair)(nil)
)

// CreatePeer implements verbs.DatagramRDMA.
func (q *queuePair) CreatePeer(a verbs.PeerAttr) (verbs.PeerAH, error) {
	const op = "create peer"
	if err := q.pd.addRef(kindAH, op); err != nil {
		return nil, err
	}
	h, err := q.createPeer(op, &a)
	if err != nil {
		q.pd.release(kindAH)
		return nil, err
	}
	return h, nil
}

func (q *queuePair) createPeer(op string, a *verbs.PeerAttr) (*peerHandle, error) {
	attr, path, err := resolveAV(q.dev, a.AH, op)
	switch {
	case err != nil:
		return nil, err
	case path.Dst.Addr().IsMulticast():
		return nil, q.newOpError(op, verbs.ErrInvalid, "a multicast group cannot be a peer")
	case a.QPN == 0 || a.QPN >= 1<<24:
		return nil, q.newOpError(op, verbs.ErrInvalid, "QPN: want 1 to 0xffffff")
	case a.Access&^verbs.AccessRemote != 0:
		return nil, q.newOpError(op, verbs.ErrInvalid, "Access: only AccessRemoteRead, AccessRemoteWrite and AccessRemoteAtomic are permitted")
	case a.MTU > verbs.MTU4096 || a.GiveUp < 0:
		return nil, q.newOpError(op, verbs.ErrInvalid, "MTU or GiveUp is none")
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if err := q.checkUsable(op); err != nil {
		return nil, err
	}
	if !q.core.HasRDMA() {
		return nil, q.newOpError(op, verbs.ErrUnsupported, "the queue pair was created without MaxDatagramRDMA")
	}
	h := &peerHandle{q: q, attr: attr}
	for h.peer == nil {
		h.token = q.dev.random()
		h.peer = q.core.AddPeer(qp.PeerConfig{Path: path, QPN: a.QPN, Token: h.token, MTU: a.MTU.Bytes(), Access: a.Access,
			Buffer: int(a.AH.PeerBuffer), GiveUp: int64(a.GiveUp)})
	}
	return h, nil
}

// Attr implements verbs.AH.
func (h *peerHandle) Attr() verbs.AHAttr { return h.attr }

// Token implements verbs.PeerAH.
func (h *peerHandle) Token() uint32 { return h.token }

// Connect implements verbs.PeerAH.
func (h *peerHandle) Connect(token uint32) error {
	if err := h.q.dev.checkUsable("connect peer"); err != nil {
		return err
	}
	h.q.shard.mu.Lock()
	defer h.q.shard.mu.Unlock()
	if h.closed.Load() {
		return h.q.newOpError("connect peer", verbs.ErrClosed, "")
	}
	h.peer.Connect(token)
	return nil
}

// Close implements verbs.AH.
func (h *peerHandle) Close() error {
	if h.closed.Swap(true) {
		return nil
	}
	h.q.shard.mu.Lock()
	h.peer.Remove()
	h.q.shard.unlock()
	h.q.pd.release(kindAH)
	return nil
}
