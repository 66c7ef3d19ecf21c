package link

import (
	"fmt"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BindShared binds n sockets to one address, which form a group of SO_REUSEPORT: socket i is
// number i of the group. It fails with an error of IsAddrInUse if anyone has the address,
// another group as well. The caller attaches a program that selects among the sockets, and
// passes them to Adopt, in this process or in others of the user. Until then they hold few
// packets.
func BindShared(addr netip.AddrPort, n int) (fds []int, err error) {
	addr = netip.AddrPortFrom(NormalizeBind(addr.Addr()), addr.Port())
	o := Options{Addr: addr}
	if err := o.validate(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			for _, fd := range fds {
				unix.Close(fd)
			}
			fds = nil
		}
	}()
	for i := range n {
		fd, err := openSocket(addr)
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
		if i > 0 { // the first bind is exclusive, so that only one process forms a group
			if err := reusePort(fd); err != nil {
				return fds, err
			}
		}
		if err := setRequiredOptions(fd, addr.Addr().Is6(), 0, false); err != nil {
			return fds, err
		}
		ShrinkBuffer(fd)
		if err := bindSocket(fd, addr, zoneIndex(addr.Addr())); err != nil {
			return fds, err
		}
		if i == 0 {
			if err := reusePort(fd); err != nil {
				return fds, err
			}
		}
	}
	return fds, nil
}

// zoneIndex returns the index of the interface of a link-local address, 0 for others.
func zoneIndex(a netip.Addr) int {
	if ifc := interfaceOf(a); a.Zone() != "" && ifc != nil {
		return ifc.Index
	}
	return 0
}

// ShrinkBuffer reduces the receive buffer of a socket that nobody reads to the system's
// minimum of few KiB.
func ShrinkBuffer(fd int) {
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1) // capped at the minimum, never refused
}

// Adopt opens the accelerated link on a duplicate of fd, a socket of BindShared. Closing the
// link leaves the socket of other holders usable. The environment variable SOFTRNIC_LINK adds
// to the options; the portable link cannot adopt a socket.
func Adopt(o Options, fd int) (Conn, error) {
	if err := o.applyEnv(os.Getenv(EnvVar)); err != nil {
		return nil, err
	}
	if o.Portable {
		return nil, fmt.Errorf("link: a shared address needs the fast path, which Options.Portable or %s disables", EnvVar)
	}
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("link: %w", os.NewSyscallError("fcntl(F_DUPFD_CLOEXEC)", err))
	}
	c := &udp{fd: own, shared: true}
	if err := c.configure(o); err != nil {
		c.release()
		return nil, err
	}
	c.rx.overflow = readDrops(own)
	return c, nil
}

// readDrops returns the number of packets that the socket has dropped since it exists, as
// SO_RXQ_OVFL does, or 0 if it is unknown.
func readDrops(fd int) uint32 {
	const drops = 8            // SK_MEMINFO_DROPS of linux/sock_diag.h
	var info [drops + 1]uint32 // SO_MEMINFO, since Linux 4.12
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return info[drops]
}
