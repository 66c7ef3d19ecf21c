package ifwatch

import (
	"encoding/binary"
	"net/netip"
	"syscall"
)

// A table is the state of interfaces and of an address described by a sequence
// of rtnetlink(7) messages. It is empty at first.
type table struct {
	ip    netip.Addr // canonical
	index int        // of the initial interface; the only one that counts for a link-local address
	links map[int]linkState
	addrs map[addrHolder]bool

	dump     map[addrHolder]bool // of the dump in progress, or nil
	complete bool                // a dump of addresses was completed
	hadAddr  bool                // an interface had the address itself, not only its subnet
}

// A linkState is the state of an interface in an RTM_NEWLINK message.
type linkState struct {
	up  bool
	mtu int
}

// An addrHolder is an interface with a prefix that contains the address.
type addrHolder struct {
	index  int
	prefix netip.Prefix
}

func newTable(ip netip.Addr, index int) *table {
	return &table{ip: ip.Unmap().WithZone(""), index: index, links: make(map[int]linkState), addrs: make(map[addrHolder]bool)}
}

// startAddrDump begins a dump of all addresses, which replaces the known ones
// at endAddrDump.
func (t *table) startAddrDump() { t.dump = make(map[addrHolder]bool) }

func (t *table) endAddrDump() {
	t.addrs, t.dump, t.complete = t.dump, nil, true
}

// apply applies one message. Malformed messages and those of other types are
// ignored.
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
	h := addrHolder{index, netip.PrefixFrom(ip.Unmap(), bits)}
	if !h.prefix.Contains(t.ip) && ip.Unmap() != t.ip || needsInterface(t.ip) && index != t.index {
		return
	}
	for _, set := range []map[addrHolder]bool{t.addrs, t.dump} {
		switch {
		case set == nil:
		case m.Header.Type == syscall.RTM_NEWADDR:
			set[h] = true
		default:
			delete(set, h)
		}
	}
}

// state returns the state that the messages describe; last is the state before.
// An interface on whose subnet the address lies (127.0.0.2) counts only if none
// ever had the address itself.
func (t *table) state(last State) State {
	if !t.complete {
		return last
	}
	for h := range t.addrs {
		t.hadAddr = t.hadAddr || h.prefix.Addr() == t.ip
	}
	s := State{MTU: last.MTU}
	for h := range t.addrs {
		l, known := t.links[h.index]
		if !known || t.hadAddr && h.prefix.Addr() != t.ip {
			continue
		}
		if !s.HasAddr || l.up && !s.Up {
			s = State{HasAddr: true, Up: l.up, MTU: l.mtu}
		}
	}
	return s
}
