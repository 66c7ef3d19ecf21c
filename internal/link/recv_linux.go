package link

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxReceive bounds the datagrams of one recvmmsg.
const maxReceive = 64

// receiver is the state of ReadBatch: one message header, address and control
// buffer per datagram of a recvmmsg, wired together once.
type receiver struct {
	messages []mmsghdr
	iovecs   []unix.Iovec
	names    []sockaddr
	controls [][3]cmsg // one each for traffic class, GRO size and overflow counter

	// want is how many datagrams the next recvmmsg asks for. Asking for one
	// more than there is costs an extra round through the socket inside the
	// kernel, which a ping-pong feels; so it doubles while calls come back
	// full and halves when they do not.
	want int

	overflow uint32 // last value of the kernel's drop counter
	zones    zones
	counters receiveCounters
}

func (rx *receiver) init() {
	rx.messages = make([]mmsghdr, maxReceive)
	rx.iovecs = make([]unix.Iovec, maxReceive)
	rx.names = make([]sockaddr, maxReceive)
	rx.controls = make([][3]cmsg, maxReceive)
	rx.want = 1
	for i := range rx.messages {
		rx.iovecs[i].SetLen(slotBytes)
		m := &rx.messages[i].Msghdr
		m.Name = (*byte)(unsafe.Pointer(&rx.names[i]))
		m.Iov = &rx.iovecs[i]
		m.SetIovlen(1)
		m.Control = (*byte)(unsafe.Pointer(&rx.controls[i]))
	}
}

// ReadBatch implements Conn. It makes one system call, so a return of fewer
// datagrams than r holds does not mean that no more are there.
func (c *udp) ReadBatch(r *Datagrams) (int, error) {
	if !c.enter(reading) {
		return 0, net.ErrClosed
	}
	r.Reset()
	n := c.rx.receive(c.fd, r, c.caps.MMsg)
	for i := range n {
		r.Add(c.rx.datagram(i, r.Slot(i)))
	}
	c.leave(reading)
	return n, nil
}

// receive makes one system call and returns how many datagrams it brought.
func (rx *receiver) receive(fd int, r *Datagrams, mmsg bool) int {
	want := min(rx.want, r.Cap())
	for i := range want {
		rx.iovecs[i].Base = &r.Slot(i)[0]
		m := &rx.messages[i]
		m.Namelen = unix.SizeofSockaddrInet6
		m.SetControllen(len(rx.controls[i]) * cmsgBytes)
	}
	var n int
	var errno unix.Errno
	if want == 1 {
		if errno = recvmsg(fd, &rx.messages[0]); errno == 0 {
			n = 1
		}
	} else {
		n, errno = recvmmsg(fd, rx.messages[:want])
	}
	switch {
	case errno == unix.ECONNREFUSED || errno == unix.EHOSTUNREACH:
		rx.counters.icmp.Add(1)
	case n > 0:
		rx.counters.calls.Add(1)
	}
	if mmsg {
		rx.adapt(n)
	}
	return n
}

// adapt sets want after a call that brought n datagrams.
func (rx *receiver) adapt(n int) {
	switch {
	case n >= rx.want:
		rx.want = min(2*rx.want, maxReceive)
	case n < rx.want:
		rx.want = max(rx.want/2, 1)
	}
}

// datagram describes what message i brought into buf.
func (rx *receiver) datagram(i int, buf []byte) Datagram {
	m := &rx.messages[i]
	d := Datagram{Src: rx.names[i].get(&rx.zones), Buf: buf[:m.bytes], Seg: int(m.bytes)}
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
	rx.counters.datagrams.Add(1)
	rx.counters.packets.Add(uint64(d.Count()))
	rx.counters.bytes.Add(uint64(len(d.Buf)))
	return d
}
