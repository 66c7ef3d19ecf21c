package main

/*
#include "rdmacm.h"
*/
import "C"

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"unsafe"

	"github.com/softrnic/softrnic/wire/mad"
)

// parseSockaddr returns the address of a sockaddr_in or sockaddr_in6. ok is false for other families.
func parseSockaddr(s *C.struct_sockaddr_in6) (a netip.AddrPort, ok bool) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(s)), unsafe.Sizeof(*s))
	port := binary.BigEndian.Uint16(b[2:])
	switch binary.NativeEndian.Uint16(b) {
	case C.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port), true
	case C.AF_INET6:
		addr := netip.AddrFrom16([16]byte(b[8:24]))
		if scope := binary.NativeEndian.Uint32(b[24:]); scope != 0 && addr.IsLinkLocalUnicast() {
			addr = addr.WithZone(strconv.Itoa(int(scope)))
		}
		return netip.AddrPortFrom(addr, port), true
	}
	return a, false
}

// storeSockaddr stores an address, all zeros if it is invalid.
func storeSockaddr(s *C.struct_sockaddr_in6, a netip.AddrPort) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(s)), unsafe.Sizeof(*s))
	clear(b)
	if !a.IsValid() {
		return
	}
	binary.BigEndian.PutUint16(b[2:], a.Port())
	addr := a.Addr()
	if addr.Is4() {
		binary.NativeEndian.PutUint16(b, C.AF_INET)
		copy(b[4:], addr.AsSlice())
		return
	}
	binary.NativeEndian.PutUint16(b, C.AF_INET6)
	copy(b[8:], addr.AsSlice())
	if addr.Zone() != "" {
		scope, err := strconv.Atoi(addr.Zone())
		if err != nil {
			if i, err := net.InterfaceByName(addr.Zone()); err == nil {
				scope = i.Index
			}
		}
		binary.NativeEndian.PutUint32(b[24:], uint32(scope))
	}
}

// cmAddr returns the address of the device.
func (d *device) cmAddr() netip.Addr { return d.Addr().Addr().Unmap() }

// deviceOfLocal returns the device for a local address: the one that has it, or else, for another
// address of the host, the first one. A program that binds 127.0.0.1 or the host's address means
// the host, and it finds the device's address with rdma_get_local_addr.
func deviceOfLocal(a netip.Addr) *device {
	for _, d := range devices {
		if d.cmAddr() == a.Unmap() {
			return d
		}
	}
	if len(devices) > 0 && isHostAddr(a.Unmap()) {
		return devices[0]
	}
	return nil
}

// isHostAddr reports whether the host has the address.
func isHostAddr(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addrs, func(n net.Addr) bool {
		p, err := netip.ParsePrefix(n.String())
		return err == nil && p.Addr().Unmap() == a.WithZone("")
	})
}

// deviceOfRemote returns the device that reaches a remote address: the one that has the address
// itself, or the first one of the same family.
func deviceOfRemote(a netip.Addr) *device {
	a = a.Unmap()
	for _, d := range devices {
		if d.cmAddr() == a {
			return d
		}
	}
	for _, d := range devices {
		if d.cmAddr().Is4() == a.Is4() {
			return d
		}
	}
	return nil
}

// A portKey names a port of a port space.
type portKey struct {
	space mad.PortSpace
	port  uint16
}

// boundPorts are the ids that are bound to a port.
var boundPorts = map[portKey][]*cmID{}

// bindAddr binds an idle id to a local address and returns an errno. Port 0 selects a free one.
func (id *cmID) bindAddr(a netip.AddrPort) C.int {
	if id.state != cmIdle {
		return C.EINVAL
	}
	if !a.Addr().IsUnspecified() {
		d := deviceOfLocal(a.Addr())
		if d == nil {
			return C.ENODEV
		}
		id.device = d
		a = netip.AddrPortFrom(d.cmAddr(), a.Port())
	}
	id.src = a
	if errno := id.bindPort(); errno != 0 {
		id.device, id.src = nil, netip.AddrPort{}
		return errno
	}
	id.state = cmBound
	if id.device != nil && a.Port() != 0 {
		id.publish()
	}
	return 0
}

// publish names the port of a bound id for other processes. A port that the system chose matters only
// when the id listens.
func (id *cmID) publish() {
	if !id.published {
		id.published = true
		publishName(portKey{id.space, id.src.Port()}, id.device.cmAddr())
	}
}

// Ephemeral ports, those of /proc/sys/net/ipv4/ip_local_port_range by default.
const (
	firstEphemeral = 32768
	lastEphemeral  = 60999
)

// bindPort reserves the port of id.src, or a free one.
func (id *cmID) bindPort() C.int {
	if port := id.src.Port(); port != 0 {
		if id.conflicts(port, false) {
			return C.EADDRINUSE
		}
	} else {
		const count = lastEphemeral - firstEphemeral + 1
		start := rand.IntN(count)
		for i := 0; ; i++ {
			if i == count {
				return C.EADDRNOTAVAIL
			}
			port = uint16(firstEphemeral + (start+i)%count)
			if len(boundPorts[portKey{id.space, port}]) == 0 {
				id.src = netip.AddrPortFrom(id.src.Addr(), port)
				break
			}
		}
	}
	key := portKey{id.space, id.src.Port()}
	boundPorts[key] = append(boundPorts[key], id)
	return 0
}

// conflicts reports whether another id has the port at an address that overlaps that of id, unless
// both may reuse it and the other does not listen.
func (id *cmID) conflicts(port uint16, listen bool) bool {
	return slices.ContainsFunc(boundPorts[portKey{id.space, port}], func(other *cmID) bool {
		if other == id || id.reuseAddr && other.reuseAddr && other.state != cmListen {
			return false
		}
		if listen && other.state != cmListen && id.reuseAddr {
			return false
		}
		a, b := id.src.Addr(), other.src.Addr()
		return a.IsUnspecified() || b.IsUnspecified() || a == b
	})
}

// releasePort frees the port of an id.
func (id *cmID) releasePort() {
	key := portKey{id.space, id.src.Port()}
	if id.published {
		withdrawName(key, id.device.cmAddr())
	}
	list := slices.DeleteFunc(boundPorts[key], func(other *cmID) bool { return other == id })
	if len(list) == 0 {
		delete(boundPorts, key)
	} else {
		boundPorts[key] = list
	}
}

// resolveAddr binds the id, if necessary, and finds the device for a remote address. It returns the
// errno of the command and that of the event.
func (id *cmID) resolveAddr(src, dst netip.AddrPort) (command, event C.int) {
	if id.state == cmIdle {
		if !src.IsValid() {
			src = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
			if dst.Addr().Is4() {
				src = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
			}
		}
		if errno := id.bindAddr(src); errno != 0 {
			return errno, 0
		}
	}
	if id.state != cmBound {
		return C.EINVAL, 0
	}
	if dst.Addr().IsUnspecified() { // the host itself
		if id.device == nil && len(devices) > 0 {
			id.device = devices[0]
		}
		if id.device != nil {
			dst = netip.AddrPortFrom(id.device.cmAddr(), dst.Port())
		}
	}
	dst = redirect(portKey{id.space, dst.Port()}, dst)
	d := id.device
	if d == nil {
		d = deviceOfRemote(dst.Addr())
	}
	id.dst = netip.AddrPortFrom(dst.Addr().Unmap(), dst.Port())
	switch {
	case d == nil:
		return 0, C.ENODEV
	case d.cmAddr().Is4() != id.dst.Addr().Is4():
		return 0, C.ENETUNREACH
	}
	id.device = d
	id.src = netip.AddrPortFrom(d.cmAddr(), id.src.Port())
	id.state = cmAddrResolved
	return 0, 0
}
