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

// What a PacketConn keeps of its peers.
const (
	maxPeers       = 4096             // those that were written to last
	peerTime       = 10 * time.Second // after that a peer is asked again: it may have started anew
	queryTimeout   = 2 * time.Second  // bounds the first question
	failedPeerTime = time.Second      // how long a peer that gave no good answer is not asked
)

// peerCache are the queue pairs of those that a PacketConn sends to, by their
// addresses. They are asked for by SIDR, once and then every so often, which no
// datagram waits for.
type peerCache struct {
	conn   *PacketConn
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	mu      sync.Mutex
	byAddr  map[netip.AddrPort]*peer
	lru     list.List // of *peer, by use, the latest in front
	limit   int       // maxPeers
	stopped bool      // nobody is asked any more
}

// peer is where datagrams go. Its fields but gone are guarded by peers.mu until
// ready is closed.
type peer struct {
	addr     netip.AddrPort
	lruElem  *list.Element
	udpPort  uint16 // of its adapter, if it has told
	knownQPN uint32 // of its queue pair, 0 before the first answer

	ready      chan struct{} // closed when there is an answer
	err        error         // which may be this
	answeredAt time.Time     // when it came
	querying   bool

	// Changed only by who holds PacketConn.writing.
	ah        verbs.AH
	qpn, qkey uint32
	evicted   bool // dropped from the cache
}

func newPeers(c *PacketConn) *peerCache {
	p := &peerCache{conn: c, byAddr: make(map[netip.AddrPort]*peer), limit: maxPeers}
	p.ctx, p.cancel = context.WithCancel(c.stack.ctx)
	p.lru.Init()
	return p
}

// resolve returns the peer at an address, which it may have to ask for first.
func (s *peerCache) resolve(m *cancelctx.Context, addr netip.AddrPort) (*peer, error) {
	p, dropped := s.lookup(addr)
	s.destroyPeers(dropped)
	select {
	case <-p.ready:
	case <-m.Done():
		return nil, os.ErrDeadlineExceeded // or closed: who called looks
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return p, p.err
}

// lookup is the peer at an address, and begins to ask for it if it is time. To
// make room it drops others.
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

// addPeer adds a peer that nobody has asked yet. The lock is held.
func (s *peerCache) addPeer(addr netip.AddrPort) *peer {
	p := &peer{addr: addr, ready: make(chan struct{})}
	p.lruElem = s.lru.PushFront(p)
	s.byAddr[addr] = p
	return p
}

// evictExcess forgets those beyond the bound that were used least recently. The lock
// is held.
func (s *peerCache) evictExcess() (list []*peer) {
	for len(s.byAddr) > s.limit {
		p := s.lru.Back().Value.(*peer)
		s.remove(p)
		list = append(list, p)
	}
	return list
}

// remove takes a peer out. The lock is held.
func (s *peerCache) remove(p *peer) {
	delete(s.byAddr, p.addr)
	s.lru.Remove(p.lruElem)
}

// destroyPeers frees what peers that were forgotten have.
func (s *peerCache) destroyPeers(list []*peer) {
	if len(list) == 0 {
		return
	}
	s.conn.writing.Lock()
	defer s.conn.writing.Unlock()
	for _, p := range list {
		p.evicted = true
		if p.ah != nil {
			_ = p.ah.Destroy()
			p.ah = nil
		}
	}
}

// query asks a peer for its queue pair.
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

// setAddress makes datagrams to a peer go where it has said.
func (s *peerCache) setAddress(p *peer, at *cm.UDPeer) error {
	ah, err := s.conn.stack.pd.CreateAH(at.AH)
	if err != nil {
		return err
	}
	s.conn.writing.Lock()
	defer s.conn.writing.Unlock()
	if p.evicted {
		return ah.Destroy()
	}
	if p.ah != nil {
		_ = p.ah.Destroy()
	}
	p.ah, p.qpn, p.qkey = ah, at.QPN, at.QKey
	return nil
}

// queryError makes an error what package net has for it.
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

// handlePeerQuery takes note of a peer that asks for us, and tells its adapter's UDP port
// and its own queue pair. If that is another than it was, it has started anew.
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

// defaultUDPPort is the UDP port of an adapter that says nothing of one.
const defaultUDPPort = 4791

// stop ends the questions that there are, and allows no more.
func (s *peerCache) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
}

// close drops all peers.
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
