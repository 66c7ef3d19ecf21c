package link

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// OpenMulticast opens a link that only receives what is sent to an IPv4 multicast
// group, on the interface that has the address o.Addr. Its LocalAddr is the
// group. Every link that has joined on this machine gets a copy.
func OpenMulticast(o Options, group netip.AddrPort) (Conn, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	ifc := interfaceOf(o.Addr.Addr())
	if ifc == nil {
		return nil, fmt.Errorf("link: no interface has the address %v, so the group %v cannot be joined there", o.Addr.Addr(), group.Addr())
	}
	o.join = membership{group: group.Addr(), index: ifc.Index}
	o.Addr = group
	return openFast(o)
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
	err := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP,
		&unix.IPMreqn{Multiaddr: m.group.As4(), Ifindex: int32(m.index)})
	if err != nil {
		return fmt.Errorf("link: join %v: %w", m.group, os.NewSyscallError("setsockopt", err))
	}
	return nil
}

// sendMulticastFrom makes multicasts leave by the interface of the address.
// Without one they leave by the route, so a failure costs nothing else.
func sendMulticastFrom(fd int, a netip.Addr) {
	if ifc := interfaceOf(a); ifc != nil && a.Is4() {
		_ = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(ifc.Index)})
	}
}

// interfaceOf returns the interface with the address. Those of 127.0.0.0/8
// all belong to the loopback.
func interfaceOf(a netip.Addr) *net.Interface {
	list, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for i := range list {
		if a.IsLoopback() && list[i].Flags&net.FlagLoopback != 0 {
			return &list[i]
		}
		addrs, err := list[i].Addrs()
		if err != nil {
			continue
		}
		for _, n := range addrs {
			if p, err := netip.ParsePrefix(n.String()); err == nil && p.Addr().Unmap() == a.WithZone("") {
				return &list[i]
			}
		}
	}
	return nil
}
