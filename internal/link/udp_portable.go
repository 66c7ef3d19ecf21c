package link

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/internal/racesync"
)

// portable is the link on Go's net package, for systems without a faster one.
// A goroutine reads the socket into a ring, because net has no way to read
// without blocking; sends are one datagram each.
//
// It lacks features that a system does not offer: don't-fragment, the traffic
// class of received IPv4 packets, which net and x/net do not report, and an
// IPv4 identification of 0, which Windows does not set, so that peers can check
// its ICRC only by membership.
type portable struct {
	closeGuard
	conn  *net.UDPConn
	local netip.AddrPort
	caps  Caps
	class trafficClass

	ring       ring
	ready      chan struct{} // something was put into the ring
	woken      chan struct{} // Wake was called
	done       chan struct{} // closed by Close
	readerDone sync.WaitGroup

	tx sendCounters
	rx receiveCounters
}

// openPortable opens the portable link. The options have been validated.
func openPortable(o Options) (Conn, error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(o.Addr))
	if err != nil {
		var call *os.SyscallError // without net's own wording of the address
		if errors.As(err, &call) {
			err = call
		}
		return nil, bindError(o.Addr, err)
	}
	v6 := o.Addr.Addr().Is6()
	c := &portable{
		conn:  conn,
		class: trafficClass{conn: conn, v6: v6},
		ready: make(chan struct{}, 1),
		woken: make(chan struct{}, 1),
		done:  make(chan struct{}),
	}
	c.closeGuard.init()
	c.local = hostaddr.CanonicalPort(conn.LocalAddr().(*net.UDPAddr).AddrPort())
	dontFragment(conn, v6)
	c.class.init(o.TOS)
	c.caps = Caps{Name: "udp-portable"}
	c.caps.setInterface(o.Addr.Addr())
	c.caps.RecvBuffer, c.caps.SendBuffer = requestBuffers(conn, o.RecvBuffer, o.SendBuffer)
	c.readerDone.Go(c.readLoop)
	return c, nil
}

// requestBuffers requests socket buffers of the given sizes, halved until the
// system accepts them. It returns the effective sizes.
func requestBuffers(conn *net.UDPConn, recv, send int) (int, int) {
	for n := recv; n > minBuffer && conn.SetReadBuffer(n) != nil; n /= 2 {
	}
	for n := send; n > minBuffer && conn.SetWriteBuffer(n) != nil; n /= 2 {
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0
	}
	raw.Control(func(fd uintptr) { recv, send = bufferSizes(fd) })
	return recv, send
}

// minBuffer is less than any system's default, bytes.
const minBuffer = 4096

// readLoop moves datagrams from the socket to the ring until the socket is
// closed.
func (c *portable) readLoop() {
	buf := make([]byte, slotBytes)
	oob := make([]byte, 128)
	for {
		n, oobn, _, src, err := c.conn.ReadMsgUDPAddrPort(buf, oob)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			c.rx.icmp.Add(1) // the ICMP error of an earlier packet
			continue
		}
		src = hostaddr.CanonicalPort(src)
		if !c.ring.push(src, c.class.parseReceived(oob[:oobn]), buf[:n]) {
			c.rx.overflow.Add(1)
			continue
		}
		c.rx.calls.Add(1)
		c.rx.datagrams.Add(1)
		c.rx.packets.Add(1)
		c.rx.bytes.Add(uint64(n))
		notify(c.ready)
	}
}

// notify puts a token into a channel of capacity one, unless it holds one.
func notify(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// LocalAddr implements Conn.
func (c *portable) LocalAddr() netip.AddrPort { return c.local }

// Caps implements Conn.
func (c *portable) Caps() Caps { return c.caps }

// Stats returns the counters of the link.
func (c *portable) Stats() Stats { return makeStats(&c.tx, &c.rx) }

// WriteBatch implements Conn: one system call per packet.
func (c *portable) WriteBatch(b *Batch) error {
	if !c.enter(callWrite) {
		return net.ErrClosed
	}
	defer c.exit(callWrite)
	b.Seal(c.local, false)
	racesync.Release()
	for i := range b.Len() {
		to, pkt := b.Packet(i)
		if err := c.writeDatagram(pkt, c.class.prepareSend(to), to.Dst); err != nil {
			if errors.Is(err, net.ErrClosed) {
				return net.ErrClosed
			}
			b.AddRefusal(i, c.tx.countError(err), 0)
			continue
		}
		c.tx.calls.Add(1)
		c.tx.packets.Add(1)
		c.tx.bytes.Add(uint64(len(pkt)))
	}
	return nil
}

// writeDatagram sends one datagram. Without a control message it takes the call of
// package net that does not allocate.
func (c *portable) writeDatagram(pkt, oob []byte, to netip.AddrPort) (err error) {
	if needsZone(to.Addr()) { // systems other than Linux don't know it from the socket
		to = netip.AddrPortFrom(to.Addr().WithZone(c.caps.Interface), to.Port())
	}
	if oob == nil {
		_, err = c.conn.WriteToUDPAddrPort(pkt, to)
	} else {
		_, _, err = c.conn.WriteMsgUDPAddrPort(pkt, oob, to)
	}
	return err
}

// ReadBatch implements Conn.
func (c *portable) ReadBatch(r *Datagrams) (int, error) {
	if !c.enter(callRead) {
		return 0, net.ErrClosed
	}
	r.Reset()
	c.ring.pop(r)
	c.exit(callRead)
	if len(r.Msgs()) > 0 {
		racesync.Acquire()
	}
	return len(r.Msgs()), nil
}

// Wait implements Conn.
func (c *portable) Wait(timeout time.Duration) (bool, error) {
	if !c.enter(callWait) {
		return false, net.ErrClosed
	}
	defer c.exit(callWait)
	if timeout == 0 {
		return !c.ring.isEmpty(), nil
	}
	var expired <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		expired = t.C
	}
	for {
		if !c.ring.isEmpty() {
			return true, nil
		}
		select {
		case <-c.ready: // possibly for datagrams already read
		case <-c.woken:
			return !c.ring.isEmpty(), nil
		case <-expired:
			return !c.ring.isEmpty(), nil
		case <-c.done:
			return false, net.ErrClosed
		}
	}
}

// Wake implements Conn.
func (c *portable) Wake() { notify(c.woken) }

// Close implements Conn. It returns when the socket is released and the
// reading goroutine has ended.
func (c *portable) Close() error {
	c.close(func() {
		close(c.done)
		c.conn.Close()
	}, c.readerDone.Wait)
	return nil
}

// countError counts a packet that the system did not send, and returns the
// error number.
func (tx *sendCounters) countError(err error) syscall.Errno {
	errno := syscall.EIO // if err is not from a system call
	errors.As(err, &errno)
	tx.countLost(errno, 1)
	return errno
}
