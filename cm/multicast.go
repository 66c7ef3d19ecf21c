package cm

import (
	"net/netip"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A Multicast is a group that a queue pair has joined, with the address data for sends to it.
type Multicast struct {
	Group     netip.Addr
	QPN, QKey uint32       // verbs.SendWR.RemoteQPN and RemoteQKey
	AH        verbs.AHAttr // for verbs.PD.CreateAH
	qp        verbs.QP
	closed    atomic.Bool
}

// Join attaches u.QP to a multicast group (rdma_join_multicast). No message is exchanged: on RoCE
// the group's address is its GID, and the network learns of members by IGMP or MLD. Datagrams to the
// group carry the Q_Key of the port space, UDQKey.
func (m *Manager) Join(group netip.Addr, u UDQueuePair) (*Multicast, error) {
	group = hostaddr.Canonical(group)
	qkey, err := u.activateQP(m.orClosed())
	if err == nil {
		err = u.QP.AttachMcast(verbs.GIDFromAddr(group))
	}
	if err != nil {
		return nil, wrapError("join group", netip.AddrPortFrom(group, 0), err, "")
	}
	return &Multicast{
		Group: group, QPN: wire.QPNMulticast, QKey: qkey, AH: ahAttrTo(netip.AddrPortFrom(group, rocePort)), qp: u.QP,
	}, nil
}

// Close detaches the queue pair from the group (rdma_leave_multicast). Close is idempotent, and a
// nil or zero Multicast is closed.
func (g *Multicast) Close() error {
	if g == nil || g.qp == nil || g.closed.Swap(true) {
		return nil
	}
	if err := g.qp.DetachMcast(verbs.GIDFromAddr(g.Group)); err != nil {
		return wrapError("leave group", netip.AddrPortFrom(g.Group, 0), err, "")
	}
	return nil
}
