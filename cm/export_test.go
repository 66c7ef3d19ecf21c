package cm

import (
	"net/netip"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// Waiting returns the number of requests that Accept would return.
func (l *Listener) Waiting() int {
	l.l.m.mu.Lock()
	defer l.l.m.mu.Unlock()
	return l.l.queue.Len()
}

// REQ returns the message that Dial would send.
func (m *Manager) REQ(addr netip.AddrPort, qp verbs.QP, o DialOptions) *mad.REQ {
	setDefault(&o.UDPPort, rocePort)
	setDefault(&o.PortSpace, TCP)
	attr, _ := o.QPAttr(qp.Type())
	return m.buildREQ(addr, m.describeQP(qp, &attr), &o)
}
