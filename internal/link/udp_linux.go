package link

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// udp is the accelerated link: one unconnected UDP socket in blocking mode,
// outside Go's netpoller, driven with MSG_DONTWAIT; see waiter for blocked
// waits.
type udp struct {
	closeGuard
	fd     int
	shared bool // other processes hold the socket, see Adopt

	local netip.AddrPort
	caps  Caps        // as opened, except the two that may be switched off later:
	gso   atomic.Bool // segmentation offload
	mmsg  atomic.Bool // sendmmsg and recvmmsg

	tx sender
	rx receiver

	errQueueReady atomic.Bool // the error queue holds something
	waiter
}

// openFast opens the accelerated link. The options have been validated.
func openFast(o Options) (Conn, error) {
	c, err := openUDP(o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func openUDP(o Options) (*udp, error) {
	fd, err := openSocket(o.Addr)
	if err != nil {
		return nil, err
	}
	c := &udp{fd: fd}
	if err := c.configure(o); err != nil {
		c.release()
		return nil, err
	}
	return c, nil
}

// openSocket opens a socket for an address, without binding it.
func openSocket(addr netip.AddrPort) (int, error) {
	family := unix.AF_INET
	if addr.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, bindError(addr, os.NewSyscallError("socket", err))
	}
	return fd, nil
}

// configure sets the options of the socket, and binds it unless it is shared.
func (c *udp) configure(o Options) error {
	v6 := o.Addr.Addr().Is6()
	fd := c.fd
	c.closeGuard.init()
	if err := c.waiter.openFDs(fd); err != nil {
		return fmt.Errorf("link: %w", err)
	}
	if o.reusePort {
		if err := reusePort(fd); err != nil {
			return err
		}
	}
	if err := o.membership.apply(fd); err != nil {
		return err
	}
	if err := c.setOptions(o); err != nil {
		return err
	}
	c.gso.Store(!o.NoGSO && hasGSO(fd))
	c.mmsg.Store(!o.NoMMsg)
	c.caps = Caps{
		GRO:  setGRO(fd, !o.NoGRO),
		Name: "udp-linux",
	}
	c.caps.setInterface(o.Addr.Addr())
	c.caps.RecvBuffer, c.caps.SendBuffer = setBuffers(fd, o.RecvBuffer, o.SendBuffer)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1) // a counter: do without if need be
	limit := unix.NsecToTimeval(int64(maxSendBlock))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
		return fmt.Errorf("link: %w", os.NewSyscallError("setsockopt(SO_SNDTIMEO)", err))
	}
	if !c.shared {
		if err := bindSocket(fd, o.Addr, cmp.Or(o.membership.index, c.caps.Index)); err != nil {
			return err
		}
	}
	var err error
	if c.local, err = localAddr(fd); err != nil {
		return err
	}
	sendMulticastFrom(fd, c.caps.Index, v6)
	c.tx.init(v6, o.TOS, setHops(fd, v6))
	c.tx.scope = uint32(c.caps.Index)
	c.rx.init()
	return nil
}

// setOptions sets the required options. A shared socket has all but two since it was bound.
func (c *udp) setOptions(o Options) error {
	v6 := o.Addr.Addr().Is6()
	if !c.shared {
		return setRequiredOptions(c.fd, v6, o.TOS, o.NoTOS)
	}
	level, option := tosOption(v6)
	return errors.Join(
		socketOption{"traffic class", level, option, int(o.TOS)}.apply(uintptr(c.fd)),
		receiveTOSOption(v6, o.NoTOS).apply(uintptr(c.fd)))
}

// bindSocket binds a socket. The index is that of the interface of a link-local address.
func bindSocket(fd int, addr netip.AddrPort, index int) error {
	var err error
	if addr.Addr().Is4() {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: addr.Addr().As4(), Port: int(addr.Port())})
	} else {
		sa := &unix.SockaddrInet6{Addr: addr.Addr().As16(), Port: int(addr.Port())}
		if addr.Addr().Zone() != "" {
			sa.ZoneId = uint32(index)
		}
		err = unix.Bind(fd, sa)
	}
	if err != nil {
		return bindError(addr, os.NewSyscallError("bind", err))
	}
	return nil
}

// LocalAddr implements Conn.
func (c *udp) LocalAddr() netip.AddrPort { return c.local }

// Caps implements Conn.
func (c *udp) Caps() Caps {
	caps := c.caps
	caps.GSO = c.gso.Load()
	caps.MMsg = c.mmsg.Load()
	return caps
}

// Stats returns the counters of the link.
func (c *udp) Stats() Stats { return makeStats(&c.tx.counters, &c.rx.counters) }

// Close implements Conn. It returns when the socket is released, so that the
// address can be bound again.
func (c *udp) Close() error {
	c.close(c.interrupt, c.release)
	return nil
}

// interrupt ends blocked sends and waits. On a UDP socket shutdown reports
// ENOTCONN and works all the same: sends fail, polls see a hang-up. A shared socket
// would stay so for its next holder; there a blocked send ends after maxSendBlock.
func (c *udp) interrupt() {
	if !c.shared {
		unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
	c.set.Interrupt()
}

// release closes the descriptors; no call may be in progress.
func (c *udp) release() {
	unix.Close(c.fd)
	c.waiter.closeFDs()
}
