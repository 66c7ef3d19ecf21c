package sim_test

import "github.com/softrnic/softrnic/verbs"

// window is a memory window that a program opens on its target for its peer.
type window struct {
	owner *qpProgram // the owner
	mw    verbs.MW
	key   uint32 // while it is bound
	bound bool   // the peer may use it
	busy  bool   // being bound or invalidated
	users uint64 // the peer's last request through it
}

func newWindow(h *qpProgram) *window {
	mw, err := h.host.pd.AllocMW()
	h.world.must(err)
	return &window{owner: h, mw: mw}
}

// bind returns the request that opens it.
func (m *window) bind(wr *verbs.SendWR) bool {
	if m.bound || m.busy || m.owner.pair.killed {
		return false
	}
	target := m.owner.target.mr
	m.busy = true
	m.key = verbs.IncRKey(m.mw.RKey())
	wr.Bind = verbs.BindMW{MW: m.mw, RKey: m.key, MR: target, Length: uint64(target.Len()),
		Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessZeroBased}
	if t := m.owner.world.trace; t != nil {
		t.NameKey(m.owner.host.dev, m.key, "window")
	}
	return true
}

func (m *window) isBound() { m.busy, m.bound = false, true }

// invalidate returns the owner's request that closes it, after the peer's last use.
func (m *window) invalidate(wr *verbs.SendWR) bool {
	peer := m.owner.peer
	if !m.bound || len(peer.posted) > 0 && peer.posted[0].id <= m.users {
		return false
	}
	m.bound, m.busy = false, true
	wr.InvKey = m.key
	return true
}

// closeByPeer makes the peer's message close it, after all its other messages.
func (m *window) closeByPeer(wr *verbs.SendWR) bool {
	if !m.bound {
		return false
	}
	m.bound, m.busy = false, true
	wr.InvKey = m.key
	wr.Flags |= verbs.SendFence
	return true
}
