package udpraw

import (
	"fmt"
	"net/netip"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

var modes = []Mode{Spin, Block, Netpoll}

// HasOffload reports whether the kernel supports UDP_SEGMENT and UDP_GRO.
func HasOffload() bool { return MaxSegments() > 1 }

// MaxSegments returns the maximum number of packets in one GSO buffer (UDP_MAX_SEGMENTS): 128
// in newer kernels, 64 in older ones, 1 without GSO.
func MaxSegments() int { return probeSegments() }

var probeSegments = sync.OnceValue(func() int {
	s, err := openRawSocket(socketOptions{offload: true})
	if err != nil {
		return 1
	}
	defer s.close()
	s.setPeer(s.localAddr()) // sends to itself; the packets are dropped when the socket is closed
	for n := 128; n > 1; n /= 2 {
		if s.sendSegments(make([]byte, n), 1) == nil {
			return n
		}
	}
	return 1
})

// A rawSocket makes the system calls itself. The descriptor is in blocking mode, and
// nonblocking calls pass MSG_DONTWAIT. So both kinds of waiting are possible without the
// netpoller.
type rawSocket struct {
	fd      int
	offload bool
	peer    unix.RawSockaddrInet4

	out, in       unix.Msghdr
	outIov, inIov unix.Iovec
	outControl    [unix.SizeofCmsghdr + 8]byte // CmsgSpace(2): UDP_SEGMENT
	inControl     [64]byte                     // space for UDP_GRO
}

func openSocket(o socketOptions) (socket, error) {
	s, err := openRawSocket(o)
	if err != nil {
		return nil, err // not a typed nil
	}
	return s, nil
}

func openRawSocket(o socketOptions) (*rawSocket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	s := &rawSocket{fd: fd, offload: o.offload}
	if err := s.setOptions(o); err != nil {
		s.close()
		return nil, err
	}
	s.out.Iov, s.in.Iov = &s.outIov, &s.inIov
	s.out.SetIovlen(1)
	s.in.SetIovlen(1)
	s.out.Name, s.out.Namelen = (*byte)(unsafe.Pointer(&s.peer)), unix.SizeofSockaddrInet4
	if o.offload {
		s.out.Control = &s.outControl[0]
		s.out.SetControllen(unix.CmsgSpace(2))
		h := (*unix.Cmsghdr)(unsafe.Pointer(&s.outControl[0]))
		h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
		h.SetLen(unix.CmsgLen(2))
	}
	return s, nil
}

func (s *rawSocket) setOptions(o socketOptions) error {
	if err := unix.Bind(s.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	if o.buffer > 0 {
		// The kernel limits this to rmem_max and wmem_max; recvBuffer returns the result.
		for _, opt := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF} {
			if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, opt, o.buffer); err != nil {
				return os.NewSyscallError("setsockopt", err)
			}
		}
	}
	if o.offload {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_UDP, unix.UDP_GRO, 1); err != nil {
			return os.NewSyscallError("setsockopt UDP_GRO", err)
		}
	}
	// A blocking receive returns EAGAIN after receiveTimeout.
	tv := unix.NsecToTimeval(receiveTimeout.Nanoseconds())
	return os.NewSyscallError("setsockopt SO_RCVTIMEO", unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv))
}

func (s *rawSocket) localAddr() netip.AddrPort {
	sa, err := unix.Getsockname(s.fd)
	if err != nil {
		return netip.AddrPort{}
	}
	in := sa.(*unix.SockaddrInet4)
	return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), uint16(in.Port))
}

func (s *rawSocket) setPeer(peer netip.AddrPort) {
	port := peer.Port()
	s.peer = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: peer.Addr().As4()}
	*(*[2]byte)(unsafe.Pointer(&s.peer.Port)) = [2]byte{byte(port >> 8), byte(port)}
}

func (s *rawSocket) recvBuffer() int {
	n, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return n
}

func (s *rawSocket) close() error { return unix.Close(s.fd) }

func (s *rawSocket) sendSegments(b []byte, seg int) error {
	if s.offload {
		*(*uint16)(unsafe.Pointer(&s.outControl[unix.CmsgLen(0)])) = uint16(seg)
		s.outIov.Base = &b[0]
		s.outIov.SetLen(len(b))
		_, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.out)), 0)
		return s.sendError(e, len(b), seg)
	}
	for len(b) > 0 {
		n := min(seg, len(b))
		_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(n),
			0, uintptr(unsafe.Pointer(&s.peer)), unix.SizeofSockaddrInet4)
		if e != 0 {
			return s.sendError(e, n, seg)
		}
		b = b[n:]
	}
	return nil
}

func (s *rawSocket) sendError(e unix.Errno, n, seg int) error {
	if e == 0 {
		return nil
	}
	return fmt.Errorf("udpraw: send %d bytes in packets of %d: %w", n, seg, e)
}

func (s *rawSocket) tryReceive(b []byte) (int, error) {
	for {
		n, e := s.recvNonblocking(b)
		switch e {
		case 0:
			return n, nil
		case unix.EAGAIN:
			return 0, nil
		case unix.EINTR:
		default:
			return 0, os.NewSyscallError("recvmsg", e)
		}
	}
}

// recvNonblocking makes one nonblocking system call.
func (s *rawSocket) recvNonblocking(b []byte) (int, unix.Errno) {
	if s.offload {
		s.inIov.Base = &b[0]
		s.inIov.SetLen(len(b))
		s.in.Control = &s.inControl[0]
		s.in.SetControllen(len(s.inControl))
		n, _, e := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.in)), unix.MSG_DONTWAIT)
		return int(n), e
	}
	n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), e
}

func (s *rawSocket) receiveBlocking(b []byte) (int, error) {
	for {
		n, _, e := unix.Syscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
		switch e {
		case 0:
			return int(n), nil
		case unix.EAGAIN:
			return 0, errTimeout
		case unix.EINTR:
		default:
			return 0, os.NewSyscallError("recvfrom", e)
		}
	}
}
