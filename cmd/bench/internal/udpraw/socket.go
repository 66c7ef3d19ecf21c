package udpraw

import (
	"errors"
	"net"
	"net/netip"
	"time"
)

// receiveTimeout is the maximum time that a receive waits for a datagram.
const receiveTimeout = 5 * time.Second

// maxDatagram is the largest UDP payload over IPv4, and thus of one GSO buffer.
const maxDatagram = 65507

var errTimeout = errors.New("udpraw: no packet within " + receiveTimeout.String())

// A socket is an unconnected UDP socket on the IPv4 loopback address, like that of an adapter:
// any peer may send to it. It is used by one goroutine only.
type socket interface {
	// localAddr returns the bound address.
	localAddr() netip.AddrPort

	// setPeer sets the destination of sendSegments.
	setPeer(peer netip.AddrPort)

	// sendSegments sends b as datagrams of seg bytes; the last may be shorter.
	sendSegments(b []byte, seg int) error

	// tryReceive reads available data into b: one datagram, or several of equal size that GRO
	// merged. It returns 0 if there is none. The portable socket waits for a short time.
	tryReceive(b []byte) (int, error)

	// receiveBlocking is a tryReceive that blocks for at most receiveTimeout.
	receiveBlocking(b []byte) (int, error)

	// recvBuffer returns the effective receive buffer in bytes, or 0 if it is unknown.
	recvBuffer() int

	close() error
}

// socketOptions are the options of a socket.
type socketOptions struct {
	offload bool // UDP_SEGMENT out, UDP_GRO in
	buffer  int  // requested bytes in both directions; 0 keeps the default
}

// A netSocket uses package net: the netpoller parks the goroutine. It works on every system and
// has no offload.
type netSocket struct {
	c    *net.UDPConn
	peer netip.AddrPort
}

func openNetSocket(o socketOptions) (socket, error) {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	if o.buffer > 0 {
		// Best effort: the system may silently allow less.
		_ = c.SetReadBuffer(o.buffer)
		_ = c.SetWriteBuffer(o.buffer)
	}
	return &netSocket{c: c}, nil
}

func (s *netSocket) localAddr() netip.AddrPort   { return s.c.LocalAddr().(*net.UDPAddr).AddrPort() }
func (s *netSocket) setPeer(peer netip.AddrPort) { s.peer = peer }
func (s *netSocket) recvBuffer() int             { return 0 }
func (s *netSocket) close() error                { return s.c.Close() }

func (s *netSocket) sendSegments(b []byte, seg int) error {
	for len(b) > 0 {
		n := min(seg, len(b))
		if _, err := s.c.WriteToUDPAddrPort(b[:n], s.peer); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (s *netSocket) tryReceive(b []byte) (int, error) {
	n, err := s.receiveWithin(time.Millisecond, b)
	if errors.Is(err, errTimeout) {
		err = nil
	}
	return n, err
}

func (s *netSocket) receiveBlocking(b []byte) (int, error) { return s.receiveWithin(receiveTimeout, b) }

func (s *netSocket) receiveWithin(d time.Duration, b []byte) (int, error) {
	if err := s.c.SetReadDeadline(time.Now().Add(d)); err != nil {
		return 0, err
	}
	n, _, err := s.c.ReadFromUDPAddrPort(b)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		err = errTimeout
	}
	return n, err
}
