package link

import (
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/racesync"
)

// maxSendBlock is the maximum time that a send waits for free space in the send
// buffer, which a slow interface can fill. The sender holds a lock that others
// need; packets not sent in time are lost and retransmitted.
const maxSendBlock = 10 * time.Millisecond

// maxSendMessages bounds the messages of one sendmmsg.
const maxSendMessages = 64

// sender is the state of WriteBatch: one message header, address and control
// buffer per message of a sendmmsg, wired together once.
type sender struct {
	messages     []mmsghdr
	iovecs       []unix.Iovec // one per message, or more with zero-copy payloads
	names        []sockaddr
	controls     [][maxControls]cmsg
	packets      []int // how many packets each message carries
	messageCount int   // number of messages built

	v6               bool
	tos, hops        uint8        // the socket's traffic class and hop limit
	controlTemplates sendControls // templates, copied and filled in
	icmp             []Refusal    // read from the error queue by the current WriteBatch
	scope            uint32       // interface of link-local destinations
	counters         sendCounters

	// inject, if not nil, is called before each system call with the number of
	// packets in its first message. An error it returns replaces the call, for
	// tests.
	inject func(packets int) unix.Errno
}

// sendControls are the control messages of a send: for a group of several
// packets, and for header fields that differ from the socket's.
type sendControls struct {
	segment cmsg // UDP_SEGMENT
	tos     cmsg // IP_TOS or IPV6_TCLASS
	hops    cmsg // IP_TTL or IPV6_HOPLIMIT
	flow    cmsg // IPV6_FLOWINFO
}

const maxControls = 4

// ipv6FlowInfo is IPV6_FLOWINFO of linux/in6.h: as a control message of a send, it
// needs no lease of the label.
const ipv6FlowInfo = 11

func makeSendControls(v6 bool) sendControls {
	level, tos := tosOption(v6)
	_, hops := hopsMessage(v6)
	return sendControls{
		segment: makeCmsg(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2),
		tos:     makeCmsg(level, tos, 4),
		hops:    makeCmsg(level, hops, 4),
		flow:    makeCmsg(unix.IPPROTO_IPV6, ipv6FlowInfo, 4),
	}
}

func (tx *sender) init(v6 bool, tos, hops uint8) {
	tx.messages = make([]mmsghdr, maxSendMessages)
	tx.iovecs = make([]unix.Iovec, 0, maxSendMessages)
	tx.names = make([]sockaddr, maxSendMessages)
	tx.controls = make([][maxControls]cmsg, maxSendMessages)
	tx.packets = make([]int, maxSendMessages)
	tx.v6, tx.tos, tx.hops = v6, tos, hops
	tx.controlTemplates = makeSendControls(v6)
	for i := range tx.messages {
		m := &tx.messages[i].Msghdr
		m.Name = (*byte)(unsafe.Pointer(&tx.names[i]))
		m.Control = (*byte)(unsafe.Pointer(&tx.controls[i]))
	}
}

// WriteBatch implements Conn: one system call for a batch of up to maxSendMessages
// groups.
func (c *udp) WriteBatch(b *Batch) error {
	if !c.enter(callWrite) {
		return net.ErrClosed
	}
	defer c.exit(callWrite)
	for next := 0; next < b.Len(); {
		gso := c.gso.Load()
		b.Seal(c.local, gso)
		c.tx.buildMessages(b, next, b.Len(), gso)
		done, refused := c.sendMessages(b, next)
		next += done
		if refused {
			next = c.sendWithoutGSO(b, next)
		}
	}
	if len(c.tx.icmp) > 0 {
		b.AddRefusals(c.tx.icmp)
		c.tx.icmp = c.tx.icmp[:0]
	}
	if b.HasZeroCopy() {
		clear(c.tx.iovecs) // releases user memory
	}
	if c.closed.Load() {
		return net.ErrClosed
	}
	return nil
}

// sendWithoutGSO sends the group that starts at packet first packet by packet,
// after the system refused it as a whole, and returns the index of the packet
// behind the group. If the first packet passes, GSO was the reason and is
// switched off; otherwise the reason is another one, such as a packet too large
// for the path.
func (c *udp) sendWithoutGSO(b *Batch, first int) int {
	g := b.groups[b.packets[first].group]
	b.Seal(c.local, false)
	before := c.tx.counters.packets.Load()
	c.tx.buildMessages(b, first, first+1, false)
	c.sendMessages(b, first)
	if c.tx.counters.packets.Load() > before {
		c.gso.Store(false)
		c.tx.counters.gsoFallbacks.Add(1)
	}
	for next := first + 1; next < g.first+g.count; {
		c.tx.buildMessages(b, next, g.first+g.count, false)
		done, _ := c.sendMessages(b, next)
		next += done
	}
	return g.first + g.count
}

// buildMessages builds messages for packets [first, last) of b, as many as
// there is space for: one per group with GSO, else one per packet.
func (tx *sender) buildMessages(b *Batch, first, last int, gso bool) {
	tx.messageCount = 0
	tx.iovecs = tx.iovecs[:0]
	for first < last && tx.messageCount < maxSendMessages {
		g := &b.groups[b.packets[first].group]
		n := 1
		if gso {
			n = g.count
		}
		tx.addMessage(g, n, tx.appendIovecs(b, b.packets[first:first+n]))
		first += n
	}
}

// appendIovecs appends the memory of some consecutive packets to the iovecs and
// returns it.
func (tx *sender) appendIovecs(b *Batch, packets []packet) []unix.Iovec {
	first := len(tx.iovecs)
	from, last := packets[0].off, packets[len(packets)-1].end
	for i := range packets {
		if p := &packets[i]; p.payload != nil {
			payload, icrc := p.payloadOffsets()
			tx.appendIovec(b.buf[from:payload])
			tx.appendIovec(p.payload)
			from = icrc
		}
	}
	tx.appendIovec(b.buf[from:last])
	return tx.iovecs[first:]
}

func (tx *sender) appendIovec(buf []byte) {
	v := unix.Iovec{Base: &buf[0]}
	v.SetLen(len(buf))
	tx.iovecs = append(tx.iovecs, v)
}

// addMessage prepares a message of n packets.
func (tx *sender) addMessage(g *group, n int, memory []unix.Iovec) {
	i := tx.messageCount
	tx.messageCount++
	tx.packets[i] = n
	m := &tx.messages[i].Msghdr
	m.Iov = &memory[0]
	m.SetIovlen(len(memory))
	m.Namelen = tx.names[i].setAddrPort(g.to.Dst, tx.scope)
	m.SetControllen(tx.setControls(&tx.controls[i], g, n) * cmsgBytes)
}

// setControls writes the control messages for n packets of a group and returns
// their number.
func (tx *sender) setControls(list *[maxControls]cmsg, g *group, n int) (used int) {
	if n > 1 {
		list[used] = tx.controlTemplates.segment
		list[used].put16(uint16(g.seg))
		used++
	}
	if g.to.TrafficClass != tx.tos {
		list[used] = tx.controlTemplates.tos
		list[used].put32(uint32(g.to.TrafficClass))
		used++
	}
	if hops := g.to.HopLimit; hops != 0 && (hops != tx.hops || g.to.Dst.Addr().IsMulticast()) {
		list[used] = tx.controlTemplates.hops
		list[used].put32(uint32(hops))
		used++
	}
	if g.to.FlowLabel != 0 && tx.v6 {
		list[used] = tx.controlTemplates.flow
		list[used].putBig32(g.to.FlowLabel)
		used++
	}
	return used
}

// sendMessages sends the messages, which begin with packet first of b, and
// returns the number of packets done: sent, or refused, counted and reported in
// b. It stops at a message of several packets that the system may have refused
// because of GSO.
func (c *udp) sendMessages(b *Batch, first int) (done int, gsoRefused bool) {
	tx := &c.tx
	for i := 0; i < tx.messageCount; {
		n, errno := c.sendSome(tx.messages[i:tx.messageCount], tx.packets[i])
		if errno != 0 {
			packets := tx.packets[i]
			if packets > 1 && isGSOError(errno) {
				return done, true
			}
			tx.counters.countLost(errno, packets)
			c.reportRefused(b, first+done, packets, errno)
			done += packets
			i++
			continue
		}
		tx.counters.calls.Add(1)
		for ; n > 0; n-- {
			tx.counters.packets.Add(uint64(tx.packets[i]))
			tx.counters.bytes.Add(uint64(tx.messages[i].bytes))
			done += tx.packets[i]
			i++
		}
	}
	return done, false
}

// reportRefused reports packets of one message that the system did not send.
func (c *udp) reportRefused(b *Batch, first, packets int, errno unix.Errno) {
	mtu := 0
	if errno == unix.EMSGSIZE {
		to, _ := b.Packet(first)
		mtu, _ = c.PathMTU(to.Dst) // its error would be this one
	}
	for i := range packets {
		b.AddRefusal(first+i, errno, mtu)
	}
}

// isGSOError reports whether errno may be the error of a group whose packets
// pass alone: no checksum offload or a tunnel on the path (EIO), an invalid
// segment size (EINVAL), a first packet too large for the path (EMSGSIZE).
func isGSOError(errno unix.Errno) bool {
	return errno == unix.EIO || errno == unix.EINVAL || errno == unix.EMSGSIZE
}

// trySend makes one system call for as many messages as possible.
func (c *udp) trySend(m []mmsghdr) (int, unix.Errno) {
	if len(m) > 1 && c.mmsg.Load() {
		return sendmmsg(c.fd, m)
	}
	if errno := sendmsg(c.fd, &m[0]); errno != 0 {
		return 0, errno
	}
	return 1, 0
}

// sendSome sends as many of the messages as one system call takes, at least
// one, or returns why the first could not be sent. sendmmsg reports the error
// of a later message only when that one comes first.
func (c *udp) sendSome(m []mmsghdr, packets int) (n int, errno unix.Errno) {
	if c.tx.inject != nil {
		errno = c.tx.inject(packets)
	}
	racesync.Release()
	if errno == 0 {
		n, errno = c.trySend(m)
	}
	switch errno {
	case 0:
		return n, 0
	case unix.ENOSYS: // some sandboxes lack sendmmsg
		c.mmsg.Store(false)
		errno = sendBlocking(c.fd, &m[0])
	case unix.EAGAIN:
		c.tx.counters.blocked.Add(1)
		errno = sendBlocking(c.fd, &m[0])
	}
	if errno != 0 && c.readICMP(errno) {
		errno = sendBlocking(c.fd, &m[0])
	}
	if errno != 0 {
		return 0, errno
	}
	return 1, 0
}

// readICMP reads the error queue after a failed send, and reports whether the
// error may be an ICMP error of an earlier packet: then this send was not
// tried.
func (c *udp) readICMP(errno unix.Errno) bool {
	before := len(c.tx.icmp)
	c.tx.icmp = c.readErrors(c.tx.icmp)
	found := len(c.tx.icmp) - before
	if found == 0 && errno != unix.ECONNREFUSED {
		return false
	}
	c.tx.counters.icmp.Add(uint64(max(1, found)))
	return true
}
