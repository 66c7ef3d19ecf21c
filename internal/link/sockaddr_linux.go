package link

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sockaddr holds either address family; the first field tells which.
type sockaddr unix.RawSockaddrInet6

func (s *sockaddr) v4() *unix.RawSockaddrInet4 {
	return (*unix.RawSockaddrInet4)(unsafe.Pointer(s))
}

// set writes ap in the family of the socket and returns its length. An address
// of the other family becomes one the kernel refuses with a clear error.
func (s *sockaddr) set(ap netip.AddrPort, zones *zones) uint32 {
	ip := ap.Addr().Unmap()
	if ip.Is4() {
		p := s.v4()
		p.Family = unix.AF_INET
		p.Addr = ip.As4()
		putPort(&p.Port, ap.Port())
		return unix.SizeofSockaddrInet4
	}
	s.Family = unix.AF_INET6
	s.Addr = ip.As16()
	s.Flowinfo = 0
	s.Scope_id = 0
	if ip.Zone() != "" {
		s.Scope_id = zones.index(ip.Zone())
	}
	putPort(&s.Port, ap.Port())
	return unix.SizeofSockaddrInet6
}

// get reads the address a datagram came from.
func (s *sockaddr) get(zones *zones) netip.AddrPort {
	if s.Family == unix.AF_INET {
		p := s.v4()
		return netip.AddrPortFrom(netip.AddrFrom4(p.Addr), getPort(&p.Port))
	}
	ip := netip.AddrFrom16(s.Addr)
	if s.Scope_id != 0 {
		ip = zones.addr(s.Addr, s.Scope_id)
	}
	return netip.AddrPortFrom(ip, getPort(&s.Port))
}

// Ports are big-endian in memory whatever the machine.

func putPort(field *uint16, port uint16) {
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(field))[:], port)
}

func getPort(field *uint16) uint16 {
	return binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(field))[:])
}

// zones remembers the zones of link-local addresses and the last link-local
// peers, because turning an interface number into a zone asks the kernel and
// netip's WithZone allocates. Not safe for concurrent use: reader and writer
// have one each.
type zones struct {
	names []zone
	peers [8]struct {
		ip    [16]byte
		scope uint32
		addr  netip.Addr
	}
	victim int
}

type zone struct {
	name  string
	index uint32
}

// index returns the interface number of a zone, 0 if there is none.
func (z *zones) index(name string) uint32 {
	for i := range z.names {
		if z.names[i].name == name {
			return z.names[i].index
		}
	}
	var index uint32
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		index = uint32(n)
	} else if ifi, err := net.InterfaceByName(name); err == nil {
		index = uint32(ifi.Index)
	}
	z.remember(zone{name: name, index: index})
	return index
}

// addr returns ip with the zone of an interface number.
func (z *zones) addr(ip [16]byte, scope uint32) netip.Addr {
	for i := range z.peers {
		if p := &z.peers[i]; p.scope == scope && p.ip == ip {
			return p.addr
		}
	}
	p := &z.peers[z.victim]
	z.victim = (z.victim + 1) % len(z.peers)
	p.ip, p.scope = ip, scope
	p.addr = netip.AddrFrom16(ip).WithZone(z.name(scope))
	return p.addr
}

func (z *zones) name(index uint32) string {
	for i := range z.names {
		if z.names[i].index == index {
			return z.names[i].name
		}
	}
	name := strconv.FormatUint(uint64(index), 10)
	if ifi, err := net.InterfaceByIndex(int(index)); err == nil {
		name = ifi.Name
	}
	z.remember(zone{name: name, index: index})
	return name
}

// remember keeps a machine's worth of interfaces; a flood of invented zones
// starts it over.
func (z *zones) remember(n zone) {
	if len(z.names) == 64 {
		z.names = z.names[:0]
	}
	z.names = append(z.names, n)
}

// localAddr asks the kernel what the socket is bound to.
func localAddr(fd int, zones *zones) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("link: getsockname: %w", err)
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)), nil
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(sa.Addr)
		if sa.ZoneId != 0 {
			ip = ip.WithZone(zones.name(sa.ZoneId))
		}
		return netip.AddrPortFrom(ip, uint16(sa.Port)), nil
	}
	return netip.AddrPort{}, fmt.Errorf("link: getsockname: address of an unexpected family: %T", sa)
}
