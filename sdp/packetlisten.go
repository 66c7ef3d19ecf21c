package sdp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// ListenPacket returns a *[PacketConn] at an address like ":7471" or "192.0.2.1:7471". The IP
// address, if given, must be the device's. Port 0 selects a free one. The network is "sdp" or one
// of UDP's. The port space is RDMA-CM's for datagrams (cm.UDP), distinct from that of Listen.
func (s *Stack) ListenPacket(network, address string) (net.PacketConn, error) {
	if s.isClosed() {
		return nil, openError("listen", network, netip.AddrPort{}, errClosedStack)
	}
	at, err := resolveListenAddr(context.Background(), s.ownAddr(), "udp", network, address)
	if err != nil {
		return nil, openError("listen", network, at, err)
	}
	c, err := s.listenPacketPort(at.Port())
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (s *Stack) listenPacketPort(port uint16) (*PacketConn, error) {
	c, err := s.listenPacket(port)
	if err != nil {
		return nil, listenError(netip.AddrPortFrom(s.ownAddr(), port), err)
	}
	return c, nil
}

func (s *Stack) listenPacket(port uint16) (_ *PacketConn, err error) {
	if err := s.acquire(); err != nil {
		return nil, err
	}
	defer s.inUse.Done()
	c := &PacketConn{stack: s, readDeadline: newDeadline(), writeDeadline: newDeadline()}
	c.peers = newPeerCache(s, &c.writing)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.freeResources())
		}
	}()
	if err := c.openResources(); err != nil {
		return nil, fmt.Errorf("create UD queue pair: %w", err)
	}
	if c.sidrListener, err = s.cm.ListenUD(port, cm.ListenOptions{}); err != nil {
		return nil, err
	}
	c.local = Addr{c.sidrListener.Addr()}
	c.peers.localPort, c.peers.qpn = c.local.Port(), c.qp.Num()
	s.addPacketConn(c)
	c.work.Go(c.serveSIDR)
	return c, nil
}

// openResources allocates the adapter resources of the connection.
func (c *PacketConn) openResources() (err error) {
	dev, pd := c.stack.dev, c.stack.pd
	port, err := dev.QueryPort(1)
	if err != nil {
		return err
	}
	c.mtu = port.ActiveMTU.Bytes()
	if c.recvMR, err = pd.RegMR(make([]byte, packetReceives*(wire.GRHLen+c.mtu)), verbs.AccessLocalWrite); err != nil {
		return err
	}
	if c.sendMR, err = pd.RegMR(make([]byte, packetSends*c.mtu), 0); err != nil {
		return err
	}
	for i := range packetSends {
		c.freeSlots = append(c.freeSlots, i)
	}
	if c.recvCQ, err = dev.CreateCQ(packetReceives); err != nil {
		return err
	}
	if c.sendCQ, err = dev.CreateCQ(packetSends); err != nil {
		return err
	}
	c.qp, err = pd.CreateQP(verbs.QPInitAttr{
		Type: verbs.UD, SendCQ: c.sendCQ, RecvCQ: c.recvCQ,
		Cap: verbs.QPCap{MaxSendWR: packetSends, MaxRecvWR: packetReceives, MaxSendSGE: 1, MaxRecvSGE: 1},
	})
	if err != nil {
		return err
	}
	// An unpredictable Q_Key, so that only peers that have resolved the queue pair can send to
	// it.
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	c.qkey = binary.BigEndian.Uint32(random[:]) &^ (1 << 31)
	if err := verbs.ActivateUD(c.qp, c.qkey, binary.BigEndian.Uint32(random[4:])&(1<<24-1)); err != nil {
		return err
	}
	for i := range packetReceives {
		c.toRepost = append(c.toRepost, c.recvWR(i))
	}
	return c.repostReceives()
}

// serveSIDR answers SIDR requests for the queue pair.
func (c *PacketConn) serveSIDR() {
	for {
		r, err := c.sidrListener.Accept(c.peers.ctx)
		if err != nil {
			return
		}
		if err := r.Accept(cm.UDAcceptOptions{UDQueuePair: cm.UDQueuePair{QP: c.qp}}); err == nil {
			qpn := binary.BigEndian.Uint32(r.PrivateData())
			c.peers.handlePeerQuery(r.RemoteAddr(), cmp.Or(r.RemoteAH().UDPPort, defaultUDPPort), qpn)
		}
	}
}

// SetDeadline implements net.PacketConn.
func (c *PacketConn) SetDeadline(t time.Time) error {
	return c.setDeadlines(func() { c.readDeadline.set(t); c.writeDeadline.set(t) })
}

// SetReadDeadline implements net.PacketConn.
func (c *PacketConn) SetReadDeadline(t time.Time) error {
	return c.setDeadlines(func() { c.readDeadline.set(t) })
}

// SetWriteDeadline implements net.PacketConn. A WriteTo blocks only on the SIDR reply of a peer
// or on the adapter.
func (c *PacketConn) SetWriteDeadline(t time.Time) error {
	return c.setDeadlines(func() { c.writeDeadline.set(t) })
}

// SetReadBuffer implements the method of *net.UDPConn. It has no effect: receives for 256
// datagrams are always posted.
func (c *PacketConn) SetReadBuffer(int) error { return c.setDeadlines(func() {}) }

// SetWriteBuffer implements the method of *net.UDPConn. It has no effect: the buffer holds 64
// datagrams.
func (c *PacketConn) SetWriteBuffer(int) error { return c.setDeadlines(func() {}) }

func (c *PacketConn) setDeadlines(set func()) error {
	if !c.isOpen() {
		return syscall.EINVAL
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &net.OpError{Op: "set", Net: network, Addr: c.local, Err: net.ErrClosed}
	}
	set()
	return nil
}

// Close closes the connection. Blocked calls return net.ErrClosed.
func (c *PacketConn) Close() error {
	if !c.isOpen() {
		return syscall.EINVAL
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.opError("close", netip.AddrPort{}, net.ErrClosed)
	}
	c.closed = true
	c.readDeadline.set(time.Time{}) // stops the timer
	c.writeDeadline.set(time.Time{})
	c.readDeadline.cancel()
	c.writeDeadline.cancel()
	c.mu.Unlock()
	err := c.freeResources()
	c.stack.removePacketConn(c)
	return err
}

// freeResources releases all resources.
func (c *PacketConn) freeResources() (err error) {
	c.peers.stop()
	if c.sidrListener != nil {
		err = c.sidrListener.Close()
	}
	c.work.Wait()
	c.peers.close()
	c.reading.Lock()
	defer c.reading.Unlock()
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.qp != nil {
		err = errors.Join(err, c.qp.Close())
	}
	for _, cq := range []verbs.CQ{c.recvCQ, c.sendCQ} {
		if cq != nil {
			err = errors.Join(err, cq.Close())
		}
	}
	for _, mr := range []verbs.MR{c.recvMR, c.sendMR} {
		if mr != nil {
			err = errors.Join(err, mr.Close())
		}
	}
	return err
}

// addPacketConn registers c to be closed with the stack.
func (s *Stack) addPacketConn(c *PacketConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packets[c] = struct{}{}
}

func (s *Stack) removePacketConn(c *PacketConn) {
	s.mu.Lock()
	delete(s.packets, c)
	s.mu.Unlock()
}
