package protocol_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/wire/mad"
)

// Two machines, with this program as the network between them.
func Example() {
	a, b := netip.MustParseAddrPort("192.0.2.1:4791"), netip.MustParseAddrPort("192.0.2.2:4791")
	machine := func(at netip.AddrPort) *protocol.Machine {
		return protocol.New(protocol.Config{Rand: rand.Uint32, GID: at.Addr().As16()})
	}
	ma, mb := machine(a), machine(b)
	service := mad.ServiceIDOf(mad.PortSpaceIB, 7)
	mb.Listen(service, protocol.ServiceOptions{RC: true, Backlog: 1})

	deliver := func(now protocol.Time, from netip.AddrPort, m, to *protocol.Machine) (e protocol.Event) {
		for d, ok := m.NextDatagram(); ok; d, ok = m.NextDatagram() {
			to.Handle(now, from.Addr(), d.MAD[:])
		}
		if next, ok := to.NextEvent(); ok {
			e = *next
			fmt.Println(e.Kind)
		}
		return e
	}
	id, _ := ma.Connect(1, b, mad.REQ{ServiceID: service, QPN: 17, MTU: 5,
		Primary: mad.Path{LocalGID: a.Addr().As16(), RemoteGID: b.Addr().As16()}})
	e := deliver(2, a, ma, mb)
	mb.Accept(3, e.ID, mad.REP{QPN: 18})
	deliver(4, b, mb, ma)
	ma.Ready(id, nil)
	deliver(5, a, ma, mb)
	fmt.Println(ma.State(id), mb.State(e.ID))
	// Output:
	// request
	// reply
	// established
	// ESTABLISHED ESTABLISHED
}
