package link

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A sockaddr holds either address family; the first field selects it.
type sockaddr unix.RawSockaddrInet6

func (s *sockaddr) v4() *unix.RawSockaddrInet4 {
	return (*unix.RawSockaddrInet4)(unsafe.Pointer(s))
}

// setAddrPort writes ap in the family of the socket and returns its length; scope is
// the interface of a link-local address. An address of the other family becomes
// one the kernel refuses with a clear error.
func (s *sockaddr) setAddrPort(ap netip.AddrPort, scope uint32) uint32 {
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
	if needsZone(ip) {
		s.Scope_id = scope
	}
	putPort(&s.Port, ap.Port())
	return unix.SizeofSockaddrInet6
}

// addrPort reads the address a datagram came from. Its scope is that of the socket.
func (s *sockaddr) addrPort() netip.AddrPort {
	if s.Family == unix.AF_INET {
		p := s.v4()
		return netip.AddrPortFrom(netip.AddrFrom4(p.Addr), getPort(&p.Port))
	}
	return netip.AddrPortFrom(netip.AddrFrom16(s.Addr), getPort(&s.Port))
}

// Ports are big-endian in memory whatever the machine.

func putPort(field *uint16, port uint16) {
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(field))[:], port)
}

func getPort(field *uint16) uint16 {
	return binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(field))[:])
}

// localAddr returns the address that the socket is bound to.
func localAddr(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("link: getsockname: %w", err)
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)), nil
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port)), nil
	}
	return netip.AddrPort{}, fmt.Errorf("link: getsockname: address of an unexpected family: %T", sa)
}
