package link

import (
	"net"
	"net/netip"
	"strconv"
)

// needsZone reports whether a is meaningful on one interface only (RFC 4007):
// IPv6 unicast and multicast of link-local scope.
func needsZone(a netip.Addr) bool {
	return a.Is6() && (a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast())
}

// NormalizeBind returns a as a socket is bound to it, so that two forms of one
// local address are equal: IPv4 instead of IPv4-mapped IPv6, and a zone only
// where a link-local address has one, by the name of its interface.
func NormalizeBind(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if a.Zone() == "" {
		return a
	}
	if !needsZone(a) {
		return a.WithZone("")
	}
	if index, err := strconv.Atoi(a.Zone()); err == nil {
		if ifc, err := net.InterfaceByIndex(index); err == nil {
			return a.WithZone(ifc.Name)
		}
	}
	return a
}

// setInterface fills in the interface of the address that a link is bound to.
func (c *Caps) setInterface(a netip.Addr) {
	if ifc := interfaceOf(a); ifc != nil {
		c.Interface, c.Index, c.MTU = ifc.Name, ifc.Index, ifc.MTU
		c.Up = ifc.Flags&net.FlagUp != 0 && ifc.Flags&net.FlagRunning != 0
	}
}

// BoundAddr returns LocalAddr in the form that Options.Addr takes: a link-local
// address with its interface as zone.
func (c *Caps) BoundAddr(local netip.AddrPort) netip.AddrPort {
	if !needsZone(local.Addr()) {
		return local
	}
	return netip.AddrPortFrom(local.Addr().WithZone(c.Interface), local.Port())
}

// interfaceOf returns the interface with the address a, or on whose subnet a
// lies (127.0.0.2 on the loopback interface), within the zone of a if it has
// one; nil if none.
func interfaceOf(a netip.Addr) *net.Interface {
	zone := a.Zone()
	a = a.WithZone("")
	list, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var near *net.Interface
	for i := range list {
		ifc := &list[i]
		if zone != "" && zone != ifc.Name && zone != strconv.Itoa(ifc.Index) {
			continue
		}
		addrs, err := ifc.Addrs()
		if err != nil {
			continue
		}
		for _, n := range addrs {
			prefix, err := netip.ParsePrefix(n.String())
			switch {
			case err != nil:
			case prefix.Addr() == a:
				return ifc
			case prefix.Contains(a):
				near = ifc
			}
		}
	}
	return near
}

// exampleZone returns a link-local address with a zone that it could have, or
// an example.
func exampleZone(a netip.Addr) string {
	if ifc := interfaceOf(a); ifc != nil {
		return a.WithZone(ifc.Name).String()
	}
	return "fe80::1%eth0"
}
