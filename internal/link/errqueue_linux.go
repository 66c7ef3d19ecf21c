package link

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// With IP_RECVERR the kernel keeps the ICMP errors of an unconnected socket in a
// queue, each with the destination and the first bytes of the packet that drew it
// (ip(7)). The next call on the socket also returns the error number, whichever
// that call was about. The queue makes epoll report EPOLLERR until it is empty.

// maxErrorsRead bounds the errors read from the queue at a time.
const maxErrorsRead = 64

// readErrors takes the errors from the queue and appends those that came by ICMP
// to list.
func (c *udp) readErrors(list []Refusal) []Refusal {
	var payload [512]byte
	var control [256]byte
	for range maxErrorsRead {
		n, oobn, _, from, err := unix.Recvmsg(c.fd, payload[:], control[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if err != nil {
			break
		}
		ee, ok := extendedError(control[:oobn])
		if !ok || ee.Origin != unix.SO_EE_ORIGIN_ICMP && ee.Origin != unix.SO_EE_ORIGIN_ICMP6 {
			continue // of a send that has returned the same error
		}
		r := Refusal{Err: syscall.Errno(ee.Errno), ICMP: true, Dst: sockaddrAddrPort(from)}
		if r.Err == syscall.EMSGSIZE {
			r.MTU = int(ee.Info)
		}
		r.setHead(payload[:n])
		list = append(list, r)
	}
	return list
}

// extendedError finds the struct sock_extended_err among control messages.
func extendedError(control []byte) (ee unix.SockExtendedErr, ok bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return ee, false
	}
	for _, m := range messages {
		v4 := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR
		v6 := m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		if (v4 || v6) && len(m.Data) >= 16 {
			ee.Errno = binary.NativeEndian.Uint32(m.Data)
			ee.Origin = m.Data[4]
			ee.Info = binary.NativeEndian.Uint32(m.Data[8:])
			return ee, true
		}
	}
	return ee, false
}

// sockaddrAddrPort converts an address of package unix to canonical form.
func sockaddrAddrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// PathMTU implements the interface of the function PathMTU. A connected socket
// reports the MTU of its route; no packet is sent.
func (c *udp) PathMTU(dst netip.AddrPort) (int, error) {
	family, level, option := unix.AF_INET, unix.IPPROTO_IP, unix.IP_MTU
	if c.local.Addr().Is6() {
		family, level, option = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil // out of descriptors tells nothing of the path
	}
	defer unix.Close(fd)
	if unix.Bind(fd, c.sockaddrOf(netip.AddrPortFrom(c.local.Addr(), 0))) != nil {
		return 0, nil
	}
	if err := unix.Connect(fd, c.sockaddrOf(dst)); err != nil {
		return 0, err
	}
	mtu, err := unix.GetsockoptInt(fd, level, option)
	if err != nil {
		return 0, nil
	}
	return mtu, nil
}

// sockaddrOf converts an address for package unix; a link-local one is on the
// link's interface.
func (c *udp) sockaddrOf(ap netip.AddrPort) unix.Sockaddr {
	ip := ap.Addr().Unmap()
	if ip.Is4() {
		return &unix.SockaddrInet4{Addr: ip.As4(), Port: int(ap.Port())}
	}
	sa := &unix.SockaddrInet6{Addr: ip.As16(), Port: int(ap.Port())}
	if needsZone(ip) {
		sa.ZoneId = uint32(c.caps.Index)
	}
	return sa
}
