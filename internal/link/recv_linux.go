package link

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/racesync"
)

// maxRecvMessages bounds the datagrams of one recvmmsg.
const maxRecvMessages = 64

// callsPerGrowth is the number of calls that fill receiver.limit before it doubles.
const callsPerGrowth = 32

// receiver is the state of ReadBatch: one message header, address and control
// buffer per datagram of a recvmmsg, wired together once.
type receiver struct {
	messages []mmsghdr
	iovecs   []unix.Iovec
	names    []sockaddr
	controls [][3]cmsg // one each for traffic class, GRO size and overflow counter

	// want is the number of datagrams that the next recvmmsg requests. Each
	// request beyond the last datagram costs another pass through the socket
	// in the kernel, so want doubles after a full call and halves otherwise.
	want int

	// limit bounds want, because each datagram requested takes a slot of
	// memory. It doubles with every callsPerGrowth calls that filled it, so
	// that an adapter that receives little keeps one slot, and one burst adds
	// few.
	limit, filled int

	// uncounted holds the counts since the last empty read. They are added to
	// the counters then, which keeps atomic additions off the data path.
	uncounted struct{ calls, datagrams, packets, bytes uint64 }

	overflow uint32 // last value of the kernel's drop counter
	counters receiveCounters
}

func (rx *receiver) init() {
	rx.messages = make([]mmsghdr, maxRecvMessages)
	rx.iovecs = make([]unix.Iovec, maxRecvMessages)
	rx.names = make([]sockaddr, maxRecvMessages)
	rx.controls = make([][3]cmsg, maxRecvMessages)
	rx.want, rx.limit = 1, 1
	for i := range rx.messages {
		rx.iovecs[i].SetLen(slotBytes)
		m := &rx.messages[i].Msghdr
		m.Name = (*byte)(unsafe.Pointer(&rx.names[i]))
		m.Iov = &rx.iovecs[i]
		m.SetIovlen(1)
		m.Control = (*byte)(unsafe.Pointer(&rx.controls[i]))
	}
}

// ReadBatch implements Conn. It makes one system call, so fewer datagrams than
// r holds does not mean that the receive buffer is empty.
func (c *udp) ReadBatch(r *Datagrams) (int, error) {
	if !c.enter(callRead) {
		return 0, net.ErrClosed
	}
	r.Reset()
	n := c.receiveOnce(r)
	if n == 0 && len(r.Refusals()) > 0 { // an error came first
		n = c.receiveOnce(r)
	}
	for i := range n {
		r.Add(c.rx.makeDatagram(i, r.Slot(i)))
	}
	c.exit(callRead)
	return n, nil
}

// receiveOnce makes one system call and returns the number of datagrams.
func (c *udp) receiveOnce(r *Datagrams) (n int) {
	rx := &c.rx
	want := min(rx.want, r.Cap())
	rx.prepareSlots(r, want)
	var errno unix.Errno
	if want > 1 {
		n, errno = recvmmsg(c.fd, rx.messages[:want])
	} else if errno = recvmsg(c.fd, &rx.messages[0]); errno == 0 {
		n = 1
	}
	switch {
	case n > 0:
		racesync.Acquire()
		rx.uncounted.calls++
	case errno == unix.EAGAIN:
		rx.addUncounted()
		if c.errQueueReady.Load() {
			c.reportErrors(r)
		}
	case errno == unix.ENOSYS: // some sandboxes lack recvmmsg
		c.mmsg.Store(false)
	case errno != unix.EINTR: // the ICMP error of an earlier packet; datagrams are read next
		c.reportErrors(r)
		rx.counters.icmp.Add(uint64(max(1, len(r.Refusals()))))
	}
	rx.adaptWant(n, want, c.mmsg.Load())
	return n
}

// reportErrors moves the error queue into r.
func (c *udp) reportErrors(r *Datagrams) {
	c.errQueueReady.Store(false)
	r.refusals = c.readErrors(r.refusals)
}

// addUncounted adds uncounted to the counters.
func (rx *receiver) addUncounted() {
	if rx.uncounted.calls == 0 {
		return
	}
	rx.counters.calls.Add(rx.uncounted.calls)
	rx.counters.datagrams.Add(rx.uncounted.datagrams)
	rx.counters.packets.Add(rx.uncounted.packets)
	rx.counters.bytes.Add(rx.uncounted.bytes)
	rx.uncounted.calls, rx.uncounted.datagrams, rx.uncounted.packets, rx.uncounted.bytes = 0, 0, 0, 0
}

// prepareSlots points the first n messages at the slots of r and resets the
// lengths that the kernel overwrites.
func (rx *receiver) prepareSlots(r *Datagrams, n int) {
	for i := range n {
		rx.iovecs[i].Base = &r.Slot(i)[0]
		m := &rx.messages[i].Msghdr
		m.Namelen = unix.SizeofSockaddrInet6
		m.SetControllen(len(rx.controls[i]) * cmsgBytes)
	}
}

// adaptWant sets want after a call that requested asked datagrams and returned
// n.
func (rx *receiver) adaptWant(n, requested int, mmsg bool) {
	switch {
	case !mmsg:
		rx.want = 1
	case n == requested:
		if requested == rx.limit {
			if rx.filled++; rx.filled == callsPerGrowth {
				rx.limit, rx.filled = min(2*rx.limit, maxRecvMessages), 0
			}
		}
		rx.want = min(2*requested, rx.limit)
	default:
		rx.want = max(requested/2, 1)
	}
}

// makeDatagram describes message i, received into buf.
func (rx *receiver) makeDatagram(i int, buf []byte) Datagram {
	m := &rx.messages[i]
	d := Datagram{Src: rx.names[i].addrPort(), Buf: buf[:m.bytes], Seg: int(m.bytes)}
	for k := range int(m.Controllen) / cmsgBytes {
		switch c := &rx.controls[i][k]; {
		case c.Level == unix.IPPROTO_IP && c.Type == unix.IP_TOS:
			d.TOS = c.data[0]
		case c.Level == unix.IPPROTO_IPV6 && c.Type == unix.IPV6_TCLASS:
			d.TOS = uint8(c.get32())
		case c.Level == unix.IPPROTO_UDP && c.Type == unix.UDP_GRO:
			d.Seg = int(c.get32())
		case c.Level == unix.SOL_SOCKET && c.Type == unix.SO_RXQ_OVFL:
			// The kernel counts from the socket's birth, modulo 2^32.
			rx.counters.overflow.Add(uint64(c.get32() - rx.overflow))
			rx.overflow = c.get32()
		}
	}
	rx.uncounted.datagrams++
	rx.uncounted.packets += uint64(d.Count())
	rx.uncounted.bytes += uint64(len(d.Buf))
	return d
}
