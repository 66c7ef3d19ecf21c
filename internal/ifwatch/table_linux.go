package ifwatch

import (
	"encoding/binary"
	"net/netip"
	"syscall"
)

// table is the state of interfaces and of an address that rtnetlink(7) messages,
// applied in order, describe. A new one knows nothing.
type table struct {
	ip    netip.Addr // canonical
	index int        // of the interface at first; the only one that counts for a link-local address
	links map[int]linkState
	addrs map[holder]bool

	fresh map[holder]bool // of the dump that is running, or nil
	known bool            // a dump of addresses is complete
	own   bool            // an interface had the address itself, not only its subnet
}

// linkState is the state of an interface in an RTM_NEWLINK message.
type linkState struct {
	up  bool
	mtu int
}

// holder is an interface with a prefix that the address lies in.
type holder struct {
	index  int
	prefix netip.Prefix
}

func newTable(ip netip.Addr, index int) *table {
	return &table{ip: ip.Unmap().WithZone(""), index: index, links: make(map[int]linkState), addrs: make(map[holder]bool)}
}

// startAddrs begins a dump of all addresses, which replaces what is known at
// endAddrs.
func (t *table) startAddrs() { t.fresh = make(map[holder]bool) }

func (t *table) endAddrs() {
	t.addrs, t.fresh, t.known = t.fresh, nil, true
}

// apply takes one message. One that is malformed or of another kind changes
// nothing.
func (t *table) apply(m *syscall.NetlinkMessage) {
	if len(m.Data)%syscall.RTA_ALIGNTO != 0 {
		return // malformed: the kernel pads all attributes. ParseNetlinkRouteAttr would panic.
	}
	switch m.Header.Type {
	case syscall.RTM_NEWLINK, syscall.RTM_DELLINK:
		t.applyLink(m)
	case syscall.RTM_NEWADDR, syscall.RTM_DELADDR:
		t.applyAddr(m)
	}
}

// applyLink reads struct ifinfomsg and IFLA_MTU.
func (t *table) applyLink(m *syscall.NetlinkMessage) {
	if len(m.Data) < syscall.SizeofIfInfomsg {
		return
	}
	index := int(int32(binary.NativeEndian.Uint32(m.Data[4:])))
	flags := binary.NativeEndian.Uint32(m.Data[8:])
	if m.Header.Type == syscall.RTM_DELLINK {
		delete(t.links, index)
		return
	}
	attrs, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return
	}
	// IFF_RUNNING is the operational state (RFC 2863): a carrier, and nothing that
	// holds it back. A loopback interface has it as long as it is up.
	const up = syscall.IFF_UP | syscall.IFF_RUNNING
	l := linkState{up: flags&up == up, mtu: t.links[index].mtu}
	for _, a := range attrs {
		if a.Attr.Type == syscall.IFLA_MTU && len(a.Value) >= 4 {
			l.mtu = int(binary.NativeEndian.Uint32(a.Value))
		}
	}
	t.links[index] = l
}

// applyAddr reads struct ifaddrmsg and the interface's own address: IFA_LOCAL, or
// IFA_ADDRESS where there is none.
func (t *table) applyAddr(m *syscall.NetlinkMessage) {
	if len(m.Data) < syscall.SizeofIfAddrmsg {
		return
	}
	bits, index := int(m.Data[1]), int(binary.NativeEndian.Uint32(m.Data[4:]))
	attrs, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return
	}
	var ip netip.Addr
	for _, a := range attrs {
		if a.Attr.Type == syscall.IFA_LOCAL || a.Attr.Type == syscall.IFA_ADDRESS && !ip.IsValid() {
			ip, _ = netip.AddrFromSlice(a.Value)
		}
	}
	h := holder{index, netip.PrefixFrom(ip.Unmap(), bits)}
	if !h.prefix.Contains(t.ip) && ip.Unmap() != t.ip || needsInterface(t.ip) && index != t.index {
		return
	}
	for _, set := range []map[holder]bool{t.addrs, t.fresh} {
		switch {
		case set == nil:
		case m.Header.Type == syscall.RTM_NEWADDR:
			set[h] = true
		default:
			delete(set, h)
		}
	}
}

// state returns what the messages amount to, where last was the state before. An
// interface on whose subnet the address lies (127.0.0.2) counts only if none ever
// had the address itself.
func (t *table) state(last State) State {
	if !t.known {
		return last
	}
	for h := range t.addrs {
		t.own = t.own || h.prefix.Addr() == t.ip
	}
	s := State{MTU: last.MTU}
	for h := range t.addrs {
		l, known := t.links[h.index]
		if !known || t.own && h.prefix.Addr() != t.ip {
			continue
		}
		if !s.HasAddr || l.up && !s.Up {
			s = State{HasAddr: true, Up: l.up, MTU: l.mtu}
		}
	}
	return s
}
