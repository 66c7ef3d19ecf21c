package link

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// OpenMulticast opens a receive-only link for a multicast group, on the interface
// with the address o.Addr. Its LocalAddr is the group. Every link on this machine
// that has joined gets a copy.
func OpenMulticast(o Options, group netip.AddrPort) (Conn, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	ifc := interfaceOf(o.Addr.Addr())
	if ifc == nil {
		return nil, fmt.Errorf("link: no interface has the address %v, so the group %v cannot be joined there", o.Addr.Addr(), group.Addr())
	}
	o.membership = membership{group: group.Addr(), index: ifc.Index}
	if needsZone(group.Addr()) {
		group = netip.AddrPortFrom(group.Addr().WithZone(ifc.Name), group.Port())
	}
	o.Addr = group
	return openFast(o.withDefaults())
}

// membership is a multicast group to join on an interface.
type membership struct {
	group netip.Addr
	index int
}

// apply joins the group, before the socket is bound to it.
func (m membership) apply(fd int) error {
	if !m.group.IsValid() {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("link: %w", os.NewSyscallError("setsockopt SO_REUSEADDR", err))
	}
	var err error
	if m.group.Is4() {
		err = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP,
			&unix.IPMreqn{Multiaddr: m.group.As4(), Ifindex: int32(m.index)})
	} else {
		err = unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP,
			&unix.IPv6Mreq{Multiaddr: m.group.As16(), Interface: uint32(m.index)})
	}
	if err != nil {
		return fmt.Errorf("link: join %v: %w", m.group, os.NewSyscallError("setsockopt", err))
	}
	return nil
}

// sendMulticastFrom selects the interface for outgoing multicasts. Without it the
// routing table does, so a failure is ignored.
func sendMulticastFrom(fd, index int, v6 bool) {
	switch {
	case index == 0:
	case v6:
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, index)
	default:
		_ = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(index)})
	}
}
