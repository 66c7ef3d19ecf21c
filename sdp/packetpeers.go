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
	maxPeers = 4096             // those that were written to last
	peerTime = 10 * time.Second // after that a peer is asked again: it may have started anew
	askTime  = 2 * time.Second  // bounds the first question
	failTime = time.Second      // how long a peer that gave no good answer is not asked
)

// peers are the queue pairs of those that a PacketConn sends to, by their
// addresses. They are asked for by SIDR, once and then every so often, which no
// datagram waits for.
type peers struct {
	conn   *PacketConn
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	mu   sync.Mutex
	all  map[netip.AddrPort]*peer
	last list.List // of *peer, by use, the latest in front
	most int       // maxPeers
	over bool      // nobody is asked any more
}

// peer is where datagrams go. Its fields but gone are guarded by peers.mu until
// ready is closed.
type peer struct {
	addr    netip.AddrPort
	place   *list.Element
	udpPort uint16 // of its adapter, if it has told
	num     uint32 // of its queue pair, 0 before the first answer

	ready  chan struct{} // closed when there is an answer
	err    error         // which may be this
	asked  time.Time     // when it came
	asking bool

	// Changed only by who holds PacketConn.writing.
	ah        verbs.AH
	qpn, qkey uint32
	gone      bool // dropped from the cache
}

func newPeers(c *PacketConn) *peers {
	p := &peers{conn: c, all: make(map[netip.AddrPort]*peer), most: maxPeers}
	p.ctx, p.cancel = context.WithCancel(c.stack.ctx)
	p.last.Init()
	return p
}

// find returns the peer at an address, which it may have to ask for first.
func (s *peers) find(m *cancelctx.Context, addr netip.AddrPort) (*peer, error) {
	p, dropped := s.enter(addr)
	s.drop(dropped)
	select {
	case <-p.ready:
	case <-m.Done():
		return nil, os.ErrDeadlineExceeded // or closed: who called looks
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return p, p.err
}

// enter is the peer at an address, and begins to ask for it if it is time. To
// make room it drops others.
func (s *peers) enter(addr netip.AddrPort) (p *peer, dropped []*peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = s.all[addr]
	if p != nil && p.err != nil && !p.asking && time.Since(p.asked) > failTime {
		dropped = append(dropped, p)
		s.forget(p)
		p = nil
	}
	if p == nil {
		p = s.add(addr)
	}
	s.last.MoveToFront(p.place)
	if !s.over && !p.asking && (p.asked.IsZero() || p.err == nil && time.Since(p.asked) > peerTime) {
		p.asking = true
		s.conn.work.Go(func() { s.ask(p) })
	}
	return p, append(dropped, s.excess()...)
}

// add adds a peer that nobody has asked yet. The lock is held.
func (s *peers) add(addr netip.AddrPort) *peer {
	p := &peer{addr: addr, ready: make(chan struct{})}
	p.place = s.last.PushFront(p)
	s.all[addr] = p
	return p
}

// excess forgets those beyond the bound that were used least recently. The lock
// is held.
func (s *peers) excess() (list []*peer) {
	for len(s.all) > s.most {
		p := s.last.Back().Value.(*peer)
		s.forget(p)
		list = append(list, p)
	}
	return list
}

// forget takes a peer out. The lock is held.
func (s *peers) forget(p *peer) {
	delete(s.all, p.addr)
	s.last.Remove(p.place)
}

// drop frees what peers that were forgotten have.
func (s *peers) drop(list []*peer) {
	if len(list) == 0 {
		return
	}
	s.conn.writing.Lock()
	defer s.conn.writing.Unlock()
	for _, p := range list {
		p.gone = true
		if p.ah != nil {
			_ = p.ah.Destroy()
			p.ah = nil
		}
	}
}

// ask asks a peer for its queue pair.
func (s *peers) ask(p *peer) {
	ctx, cancel := context.WithTimeout(s.ctx, askTime)
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
		err = s.aim(p, at)
	}
	c.mu.Lock()
	c.stats.Asked++
	if err != nil {
		c.stats.Refused++
	}
	c.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	first := p.asked.IsZero()
	p.asking, p.asked, p.err = false, time.Now(), askError(err)
	if err == nil {
		p.num = at.QPN
	}
	if first {
		close(p.ready)
	}
}

// aim makes datagrams to a peer go where it has said.
func (s *peers) aim(p *peer, at *cm.UDPeer) error {
	ah, err := s.conn.stack.pd.CreateAH(at.AH)
	if err != nil {
		return err
	}
	s.conn.writing.Lock()
	defer s.conn.writing.Unlock()
	if p.gone {
		return ah.Destroy()
	}
	if p.ah != nil {
		_ = p.ah.Destroy()
	}
	p.ah, p.qpn, p.qkey = ah, at.QPN, at.QKey
	return nil
}

// askError makes an error what package net has for it.
func askError(err error) error {
	var rejected *cm.UDRejectError
	var refused *verbs.RefusedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return withoutAddress(err)
	case errors.As(err, &rejected):
		return fmt.Errorf("%w: %w", errRefused, err)
	case errors.Is(err, cm.ErrUnreachable), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", &os.SyscallError{Syscall: "write", Err: syscall.EHOSTUNREACH}, cm.ErrUnreachable)
	}
	return err
}

// heard takes note of a peer that asks for us, and tells its adapter's UDP port
// and its own queue pair. If that is another than it was, it has started anew.
func (s *peers) heard(addr netip.AddrPort, udpPort uint16, qpn uint32) {
	s.mu.Lock()
	var dropped []*peer
	p := s.all[addr]
	if p != nil && p.num != 0 && p.num != qpn {
		s.forget(p)
		dropped = append(dropped, p)
		p = nil
	}
	if p == nil && udpPort != usualPort {
		p = s.add(addr)
		dropped = append(dropped, s.excess()...)
	}
	if p != nil {
		p.udpPort = udpPort
	}
	s.mu.Unlock()
	s.drop(dropped)
}

// usualPort is the UDP port of an adapter that says nothing of one.
const usualPort = 4791

// stop ends the questions that there are, and allows no more.
func (s *peers) stop() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.cancel()
}

// close drops all peers.
func (s *peers) close() {
	s.mu.Lock()
	var dropped []*peer
	for _, p := range s.all {
		s.forget(p)
		dropped = append(dropped, p)
	}
	s.mu.Unlock()
	s.drop(dropped)
}
