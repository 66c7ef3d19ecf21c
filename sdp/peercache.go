package sdp

import (
	"container/list"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/cancelctx"
	"github.com/softrnic/softrnic/verbs"
)

// Limits of the peer cache.
const (
	maxPeers       = 4096             // peers kept, by least recent use
	peerTime       = 10 * time.Second // age after which a peer is resolved again, since it may have restarted
	queryTimeout   = 2 * time.Second  // maximum duration of a SIDR exchange
	failedPeerTime = time.Second      // time after a failure before the next query
)

// A peerCache maps the addresses of peers to their queue pairs, which SIDR resolves. Entries are
// refreshed in the background; no datagram waits for that.
type peerCache struct {
	conn   *PacketConn
	ctx    context.Context // canceled with the connection
	cancel context.CancelFunc

	mu      sync.Mutex
	byAddr  map[netip.AddrPort]*peer
	lru     list.List // of *peer, most recently used first
	limit   int       // maximum number of peers
	stopped bool      // no more queries
}

// A peer is the destination of datagrams. Its fields are guarded by peerCache.mu, except as
// noted; err is constant once ready is closed.
type peer struct {
	addr     netip.AddrPort
	lruElem  *list.Element
	udpPort  uint16 // of the peer's adapter, if known
	knownQPN uint32 // queue pair number, 0 before the first reply

	ready      chan struct{} // closed after the first reply
	err        error         // result of the last query
	answeredAt time.Time     // time of the last reply
	querying   bool

	// Guarded by PacketConn.writing.
	ah        verbs.AH
	qpn, qkey uint32
	evicted   bool // removed from the cache
}

func newPeers(c *PacketConn) *peerCache {
	p := &peerCache{conn: c, byAddr: make(map[netip.AddrPort]*peer), limit: maxPeers}
	p.ctx, p.cancel = context.WithCancel(c.stack.ctx)
	p.lru.Init()
	return p
}

// resolve returns the peer at addr, and waits for its resolution if necessary.
func (s *peerCache) resolve(m *cancelctx.Context, addr netip.AddrPort) (*peer, error) {
	p, dropped := s.lookup(addr)
	s.destroyPeers(dropped)
	select {
	case <-p.ready:
	case <-m.Done():
		return nil, os.ErrDeadlineExceeded // or closed: the caller checks
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return p, p.err
}

// lookup returns the cache entry for addr, starts a query if one is due, and returns evicted
// peers for destroyPeers.
func (s *peerCache) lookup(addr netip.AddrPort) (p *peer, dropped []*peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = s.byAddr[addr]
	if p != nil && p.err != nil && !p.querying && time.Since(p.answeredAt) > failedPeerTime {
		dropped = append(dropped, p)
		s.remove(p)
		p = nil
	}
	if p == nil {
		p = s.addPeer(addr)
	}
	s.lru.MoveToFront(p.lruElem)
	if !s.stopped && !p.querying && (p.answeredAt.IsZero() || p.err == nil && time.Since(p.answeredAt) > peerTime) {
		p.querying = true
		s.conn.work.Go(func() { s.query(p) })
	}
	return p, append(dropped, s.evictExcess()...)
}

// addPeer adds an unresolved peer. s.mu must be held.
func (s *peerCache) addPeer(addr netip.AddrPort) *peer {
	p := &peer{addr: addr, ready: make(chan struct{})}
	p.lruElem = s.lru.PushFront(p)
	s.byAddr[addr] = p
	return p
}

// evictExcess removes the least recently used peers beyond the limit. s.mu must be held.
func (s *peerCache) evictExcess() (list []*peer) {
	for len(s.byAddr) > s.limit {
		p := s.lru.Back().Value.(*peer)
		s.remove(p)
		list = append(list, p)
	}
	return list
}

// remove removes a peer from the cache. s.mu must be held.
func (s *peerCache) remove(p *peer) {
	delete(s.byAddr, p.addr)
	s.lru.Remove(p.lruElem)
}

// destroyPeers destroys the address handles of removed peers.
func (s *peerCache) destroyPeers(list []*peer) {
	if len(list) == 0 {
		return
	}
	s.conn.writing.Lock()
	defer s.conn.writing.Unlock()
	for _, p := range list {
		p.evicted = true
		if p.ah != nil {
			_ = p.ah.Close()
			p.ah = nil
		}
	}
}

// query resolves a peer by SIDR.
func (s *peerCache) query(p *peer) {
	ctx, cancel := context.WithTimeout(s.ctx, queryTimeout)
	defer cancel()
	s.mu.Lock()
	udpPort := p.udpPort
	s.mu.Unlock()
	c := s.conn
	at, err := c.stack.cm.DialUD(ctx, p.addr, cm.UDDialOptions{
		UDPPort: udpPort, LocalPort: c.local.Port(),
		PrivateData: binary.BigEndian.AppendUint32(nil, c.qp.Num()),
	})
	if err == nil {
		err = s.setAddress(p, at)
	}
	c.mu.Lock()
	c.stats.Asked++
	if err != nil {
		c.stats.Refused++
	}
	c.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	first := p.answeredAt.IsZero()
	p.querying, p.answeredAt, p.err = false, time.Now(), queryError(err)
	if err == nil {
		p.knownQPN = at.QPN
	}
	if first {
		close(p.ready)
	}
}

// setAddress sets the destination of datagrams to a peer.
func (s *peerCache) setAddress(p *peer, at *cm.UDPeer) error {
	ah, err := s.conn.stack.pd.CreateAH(at.AH)
	if err != nil {
		return err
	}
	s.conn.writing.Lock()
	defer s.conn.writing.Unlock()
	if p.evicted {
		return ah.Close()
	}
	if p.ah != nil {
		_ = p.ah.Close()
	}
	p.ah, p.qpn, p.qkey = ah, at.QPN, at.QKey
	return nil
}

// queryError maps an error to the one that package net returns.
func queryError(err error) error {
	var rejected *cm.UDRejectError
	var refused *verbs.RefusedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return trimAddress(err)
	case errors.As(err, &rejected):
		return fmt.Errorf("%w: %w", errRefused, err)
	case errors.Is(err, cm.ErrUnreachable), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", &os.SyscallError{Syscall: "write", Err: syscall.EHOSTUNREACH}, cm.ErrUnreachable)
	}
	return err
}

// handlePeerQuery records the UDP port and the queue pair of a peer that has sent a SIDR request.
// Another queue pair than before means that the peer has restarted.
func (s *peerCache) handlePeerQuery(addr netip.AddrPort, udpPort uint16, qpn uint32) {
	s.mu.Lock()
	var dropped []*peer
	p := s.byAddr[addr]
	if p != nil && p.knownQPN != 0 && p.knownQPN != qpn {
		s.remove(p)
		dropped = append(dropped, p)
		p = nil
	}
	if p == nil && udpPort != defaultUDPPort {
		p = s.addPeer(addr)
		dropped = append(dropped, s.evictExcess()...)
	}
	if p != nil {
		p.udpPort = udpPort
	}
	s.mu.Unlock()
	s.destroyPeers(dropped)
}

// defaultUDPPort is the UDP port of an adapter that announces no other.
const defaultUDPPort = 4791

// stop cancels outstanding queries and prevents new ones.
func (s *peerCache) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
}

// close removes all peers.
func (s *peerCache) close() {
	s.mu.Lock()
	var dropped []*peer
	for _, p := range s.byAddr {
		s.remove(p)
		dropped = append(dropped, p)
	}
	s.mu.Unlock()
	s.destroyPeers(dropped)
}
