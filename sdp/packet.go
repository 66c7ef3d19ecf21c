package sdp

import (
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"os"
	"reflect"
	"sync"
	"syscall"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/cancelctx"
	"github.com/softrnic/softrnic/internal/counters"
	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A PacketConn sends and receives datagrams over a UD queue pair. It implements net.PacketConn.
// Datagrams may be lost, duplicated or reordered, as with UDP, but are never truncated in transit
// or corrupted.
//
// Its methods are safe for concurrent use.
type PacketConn struct {
	stack        *Stack
	local        Addr
	sidrListener *cm.UDListener // answers SIDR requests for the queue pair
	qp           verbs.QP
	mtu          int
	qkey         uint32
	recvCQ       verbs.CQ
	sendCQ       verbs.CQ
	recvMR       verbs.MR // receive buffers, each with space for a GRH
	sendMR       verbs.MR // send buffers
	peers        *peerCache

	reading  sync.Mutex // held by ReadFrom
	wcs      [packetBatch]verbs.WC
	ready    []verbs.WC     // part of wcs not returned yet
	toRepost []verbs.RecvWR // receives to post

	writing   sync.Mutex // held while a datagram is posted
	freeSlots []int      // free send buffers

	mu                          sync.Mutex
	closed                      bool
	stats                       PacketStats // without the counts of peers
	readDeadline, writeDeadline *deadline
	work                        sync.WaitGroup // of serveSIDR
}

var _ net.PacketConn = (*PacketConn)(nil)

// Sizes of a PacketConn. The receives cover a burst of full packets that fills a socket buffer of
// the default size.
const (
	packetReceives = 256
	packetSends    = 64
	packetBatch    = 32
)

// The immediate data of a datagram consists of a mark, which identifies a PacketConn, and the
// source port.
const (
	packetMark     = 0x5344 << 16 // "SD"
	packetPortMask = 1<<16 - 1
)

// PacketStats are the counters of a PacketConn. They do not include datagrams lost in the
// network, or dropped by the adapter for lack of a receive.
type PacketStats struct {
	Sent, Received uint64 // datagrams
	Truncated      uint64 // received datagrams longer than the buffer of ReadFrom
	Foreign        uint64 // datagrams dropped because their source is no PacketConn
	Asked          uint64 // SIDR requests sent
	Refused        uint64 // of these, failed
}

// All returns an iterator over the names and values of all counters: "sent", "truncated" and so
// on.
func (s PacketStats) All() iter.Seq2[string, uint64] { return counters.All(s) }

// Stats returns a snapshot of the counters.
func (c *PacketConn) Stats() PacketStats {
	if !c.isOpen() {
		return PacketStats{}
	}
	c.mu.Lock()
	s := c.stats
	c.mu.Unlock()
	s.Asked, s.Refused = c.peers.queryCounts()
	return s
}

// isOpen reports whether ListenPacket created c. Calls on a nil or zero PacketConn return
// syscall.EINVAL, as in package net.
func (c *PacketConn) isOpen() bool { return c != nil && c.stack != nil }

// LocalAddr returns the local Addr.
func (c *PacketConn) LocalAddr() net.Addr {
	if !c.isOpen() {
		return nil
	}
	return c.local
}

// MTU returns the maximum length of a datagram in bytes, the path MTU of the adapter.
func (c *PacketConn) MTU() int {
	if !c.isOpen() {
		return 0
	}
	return c.mtu
}

// ReadFrom implements net.PacketConn. It truncates a datagram longer than p.
func (c *PacketConn) ReadFrom(p []byte) (int, net.Addr, error) {
	n, from, err := c.ReadFromUDPAddrPort(p)
	if err != nil {
		return n, nil, err
	}
	return n, Addr{from}, nil
}

// ReadFromUDPAddrPort is like ReadFrom but does not allocate. It has the name that *net.UDPConn
// uses.
func (c *PacketConn) ReadFromUDPAddrPort(p []byte) (n int, from netip.AddrPort, err error) {
	if !c.isOpen() {
		return 0, netip.AddrPort{}, syscall.EINVAL
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	for {
		m, err := c.currentDeadline(c.readDeadline)
		if err != nil {
			return 0, netip.AddrPort{}, c.opError("read", netip.AddrPort{}, err)
		}
		for len(c.ready) > 0 {
			wc := &c.ready[0]
			c.ready = c.ready[1:]
			if err := wc.Err(); err != nil {
				return 0, netip.AddrPort{}, c.opError("read", netip.AddrPort{}, err)
			}
			if n, from, ok := c.copyDatagram(wc, p); ok {
				return n, from, nil
			}
		}
		if err := c.repostReceives(); err != nil {
			return 0, netip.AddrPort{}, c.opError("read", netip.AddrPort{}, err)
		}
		k, err := c.recvCQ.PollWait(m, c.wcs[:])
		c.ready = c.wcs[:k]
		if err != nil && k == 0 && !m.Canceled() {
			return 0, netip.AddrPort{}, c.opError("read", netip.AddrPort{}, err)
		}
	}
}

// copyDatagram copies a received datagram to p. It returns false if the source is no PacketConn.
func (c *PacketConn) copyDatagram(wc *verbs.WC, p []byte) (n int, from netip.AddrPort, ok bool) {
	room := wire.GRHLen + c.mtu
	at := int(wc.WRID) * room
	b := c.recvMR.Bytes()[at:][:wc.ByteLen]
	c.toRepost = append(c.toRepost, c.recvWR(int(wc.WRID)))
	src, _, _, known := wire.ParseGRH(b)
	ok = known && wc.Flags&verbs.WCWithImm != 0 && wc.Imm&^packetPortMask == packetMark
	if ok {
		n = copy(p, b[wire.GRHLen:])
		from = netip.AddrPortFrom(src, uint16(wc.Imm&packetPortMask))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !ok:
		c.stats.Foreign++
	case n < len(b)-wire.GRHLen:
		c.stats.Truncated++
		fallthrough
	default:
		c.stats.Received++
	}
	return n, from, ok
}

// recvWR returns the receive request of buffer i.
func (c *PacketConn) recvWR(i int) verbs.RecvWR {
	room := wire.GRHLen + c.mtu
	return verbs.RecvWR{WRID: uint64(i), SGList: []verbs.SGE{c.recvMR.SGE(i*room, room)}}
}

func (c *PacketConn) repostReceives() error {
	if len(c.toRepost) == 0 {
		return nil
	}
	_, err := c.qp.PostRecv(c.toRepost)
	c.toRepost = c.toRepost[:0]
	return err
}

// WriteTo implements net.PacketConn. The address is an Addr or has an AddrPort method, as
// *net.UDPAddr does. The first datagram to a peer, and later ones after 10 s, resolve the peer's
// queue pair by SIDR. WriteTo returns syscall.EHOSTUNREACH if the peer does not reply and
// syscall.ECONNREFUSED if the port is not served.
func (c *PacketConn) WriteTo(p []byte, to net.Addr) (int, error) {
	if !c.isOpen() {
		return 0, syscall.EINVAL
	}
	switch a := to.(type) {
	case Addr:
		return c.WriteToUDPAddrPort(p, a.AddrPort)
	case interface{ AddrPort() netip.AddrPort }:
		if v := reflect.ValueOf(a); v.Kind() != reflect.Pointer || !v.IsNil() {
			return c.WriteToUDPAddrPort(p, a.AddrPort())
		}
		to = nil
	}
	cause := fmt.Errorf("%w: %w", syscall.EINVAL, &net.AddrError{Err: "not an address of SDP", Addr: fmt.Sprint(to)})
	return 0, &net.OpError{Op: "write", Net: network, Source: c.local, Addr: to, Err: cause}
}

// WriteToUDPAddrPort is like WriteTo but does not allocate. It has the name that *net.UDPConn uses.
func (c *PacketConn) WriteToUDPAddrPort(p []byte, to netip.AddrPort) (int, error) {
	if !c.isOpen() {
		return 0, syscall.EINVAL
	}
	to = hostaddr.CanonicalPort(to)
	err := c.write(p, to)
	if err != nil {
		return 0, c.opError("write", to, err)
	}
	return len(p), nil
}

func (c *PacketConn) write(p []byte, to netip.AddrPort) error {
	for {
		m, err := c.currentDeadline(c.writeDeadline)
		switch {
		case err != nil:
			return err
		case len(p) > c.mtu:
			return &os.SyscallError{Syscall: "write", Err: syscall.EMSGSIZE}
		case !to.IsValid() || to.Port() == 0:
			return &os.SyscallError{Syscall: "write", Err: syscall.EINVAL}
		}
		peer, err := c.peers.resolvePeer(m, to)
		if err != nil {
			return err
		}
		if sent, err := c.postDatagram(m, p, peer); sent || err != nil {
			return err
		}
	}
}

// postDatagram posts a datagram to a peer. It returns false if the peer has been evicted from the
// cache or no send buffer became free in time.
func (c *PacketConn) postDatagram(m *cancelctx.Context, p []byte, to *packetPeer) (sent bool, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if to.evicted {
		return false, nil
	}
	for len(c.freeSlots) == 0 {
		var wcs [packetBatch]verbs.WC
		n, err := c.sendCQ.PollWait(m, wcs[:])
		for _, wc := range wcs[:n] {
			c.freeSlots = append(c.freeSlots, int(wc.WRID))
		}
		if err != nil && n == 0 {
			if m.Canceled() {
				return false, nil
			}
			return false, err
		}
	}
	i := c.freeSlots[len(c.freeSlots)-1]
	n := copy(c.sendMR.Bytes()[i*c.mtu:], p)
	_, err = c.qp.PostSend([]verbs.SendWR{{
		WRID: uint64(i), Opcode: verbs.WRSendWithImm, Flags: verbs.SendSignaled, Imm: packetMark | uint32(c.local.Port()),
		SGList: []verbs.SGE{c.sendMR.SGE(i*c.mtu, n)}, AH: to.ah, RemoteQPN: to.qpn, RemoteQKey: to.qkey,
	}})
	if err != nil {
		return false, err
	}
	c.freeSlots = c.freeSlots[:len(c.freeSlots)-1]
	c.mu.Lock()
	c.stats.Sent++
	c.mu.Unlock()
	return true, nil
}

// currentDeadline returns the context of a deadline, or an error if it has expired or c is
// closed.
func (c *PacketConn) currentDeadline(d *deadline) (*cancelctx.Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, net.ErrClosed
	case d.expired():
		return nil, os.ErrDeadlineExceeded
	}
	return d.ctx, nil
}

// opError wraps err in a *net.OpError with c's address.
func (c *PacketConn) opError(op string, to netip.AddrPort, err error) error {
	if errors.Is(err, verbs.ErrClosed) {
		err = net.ErrClosed
	}
	e := &net.OpError{Op: op, Net: network, Source: c.local, Err: err}
	if to.IsValid() {
		e.Addr = Addr{to}
	}
	return e
}
