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
	cm        *cm.Manager
	pd        verbs.PD
	localPort uint16          // of the connection
	qpn       uint32          // of its queue pair
	sending   *sync.Mutex     // PacketConn.writing, held while a datagram is posted
	ctx       context.Context // canceled with the connection
	cancel    context.CancelFunc
	queries   sync.WaitGroup

	mu      sync.Mutex
	byAddr  map[netip.AddrPort]*packetPeer
	lru     list.List // of *packetPeer, most recently used first
	limit   int       // maximum number of peers
	stopped bool      // no more queries

	asked, refused uint64 // see PacketStats
}

// A packetPeer is the destination of datagrams. Its fields are guarded by peerCache.mu, except as
// noted; err is constant once ready is closed.
type packetPeer struct {
	addr     netip.AddrPort
	lruElem  *list.Element
	udpPort  uint16 // of the peer's adapter, if known
	knownQPN uint32 // queue pair number, 0 before the first reply

	ready      chan struct{} // closed after the first reply
	err        error         // result of the last query
	answeredAt time.Time     // time of the last reply
	querying   bool

	// Guarded by peerCache.sending.
	ah        verbs.AH
	qpn, qkey uint32
	evicted   bool // removed from the cache
}

// newPeerCache returns the cache of a PacketConn. localPort and qpn must be set before its use.
func newPeerCache(stack *Stack, sending *sync.Mutex) *peerCache {
	p := &peerCache{cm: stack.cm, pd: stack.pd, sending: sending, byAddr: make(map[netip.AddrPort]*packetPeer), limit: maxPeers}
	p.ctx, p.cancel = context.WithCancel(stack.ctx)
	p.lru.Init()
	return p
}

// resolvePeer returns the peer at addr, and waits for its resolution if necessary.
func (s *peerCache) resolvePeer(m *cancelctx.Context, addr netip.AddrPort) (*packetPeer, error) {
	p, dropped := s.lookupPeer(addr)
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

// lookupPeer returns the cache entry for addr, starts a query if one is due, and returns evicted
// peers for destroyPeers.
func (s *peerCache) lookupPeer(addr netip.AddrPort) (p *packetPeer, dropped []*packetPeer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = s.byAddr[addr]
	if p != nil && p.err != nil && !p.querying && time.Since(p.answeredAt) > failedPeerTime {
		dropped = append(dropped, p)
		s.removePeer(p)
		p = nil
	}
	if p == nil {
		p = s.addPeer(addr)
	}
	s.lru.MoveToFront(p.lruElem)
	if !s.stopped && !p.querying && (p.answeredAt.IsZero() || p.err == nil && time.Since(p.answeredAt) > peerTime) {
		p.querying = true
		s.queries.Go(func() { s.queryPeer(p) })
	}
	return p, append(dropped, s.evictExcess()...)
}

// addPeer adds an unresolved peer. s.mu must be held.
func (s *peerCache) addPeer(addr netip.AddrPort) *packetPeer {
	p := &packetPeer{addr: addr, ready: make(chan struct{})}
	p.lruElem = s.lru.PushFront(p)
	s.byAddr[addr] = p
	return p
}

// evictExcess removes the least recently used peers beyond the limit. s.mu must be held.
func (s *peerCache) evictExcess() (list []*packetPeer) {
	for len(s.byAddr) > s.limit {
		p := s.lru.Back().Value.(*packetPeer)
		s.removePeer(p)
		list = append(list, p)
	}
	return list
}

// removePeer removes a peer from the cache. s.mu must be held.
func (s *peerCache) removePeer(p *packetPeer) {
	delete(s.byAddr, p.addr)
	s.lru.Remove(p.lruElem)
}

// destroyPeers destroys the address handles of removed peers.
func (s *peerCache) destroyPeers(list []*packetPeer) {
	if len(list) == 0 {
		return
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	for _, p := range list {
		p.evicted = true
		if p.ah != nil {
			_ = p.ah.Close()
			p.ah = nil
		}
	}
}

// queryPeer resolves a peer by SIDR.
func (s *peerCache) queryPeer(p *packetPeer) {
	ctx, cancel := context.WithTimeout(s.ctx, queryTimeout)
	defer cancel()
	s.mu.Lock()
	udpPort := p.udpPort
	s.mu.Unlock()
	at, err := s.cm.DialUD(ctx, p.addr, cm.UDDialOptions{
		UDPPort: udpPort, LocalPort: s.localPort,
		PrivateData: binary.BigEndian.AppendUint32(nil, s.qpn),
	})
	if err == nil {
		err = s.setAddress(p, at)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if err != nil {
		s.refused++
	}
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
func (s *peerCache) setAddress(p *packetPeer, at *cm.UDPeer) error {
	ah, err := s.pd.CreateAH(at.AH)
	if err != nil {
		return err
	}
	s.sending.Lock()
	defer s.sending.Unlock()
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
	var dropped []*packetPeer
	p := s.byAddr[addr]
	if p != nil && p.knownQPN != 0 && p.knownQPN != qpn {
		s.removePeer(p)
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

// queryCounts returns the number of SIDR requests sent, and of those that failed.
func (s *peerCache) queryCounts() (asked, refused uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, s.refused
}

// stop cancels outstanding queries and prevents new ones.
func (s *peerCache) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
}

// close waits for the queries that stop has canceled, and removes all peers.
func (s *peerCache) close() {
	s.queries.Wait()
	s.mu.Lock()
	var dropped []*packetPeer
	for _, p := range s.byAddr {
		s.removePeer(p)
		dropped = append(dropped, p)
	}
	s.mu.Unlock()
	s.destroyPeers(dropped)
}
