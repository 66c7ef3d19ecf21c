package datagram

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// refusals is the list of packets that the system refused to send since the
// last HandleRefusals. The adapter adds to it with its locks held.
type refusals struct {
	waiting atomic.Bool
	mu      sync.Mutex
	list    []*verbs.RefusedError
}

// maxRefusals bounds the list. Refusals beyond it are dropped; they recur with
// the next packet to the peer.
const maxRefusals = 64

// watchRefusals subscribes to refusals of the queue pair.
func (p *Port) watchRefusals() {
	if q, ok := p.QP.(adapter.RefusalReporter); ok {
		q.OnRefusal(p.noteRefusal)
	}
}

func (p *Port) noteRefusal(e *verbs.RefusedError) {
	p.refusals.mu.Lock()
	if len(p.refusals.list) < maxRefusals {
		p.refusals.list = append(p.refusals.list, e)
	}
	p.refusals.mu.Unlock()
	if !p.refusals.waiting.Swap(true) && p.opts.Wake != nil {
		p.opts.Wake()
	}
}

// HandleRefusals reports the peers to which the system refused to send packets
// to the core and to Options.OnRefused.
func (p *Port) HandleRefusals() {
	if !p.refusals.waiting.Load() {
		return
	}
	now := p.Now()
	p.refusals.mu.Lock()
	list := p.refusals.list
	p.refusals.list = nil
	p.refusals.waiting.Store(false)
	p.refusals.mu.Unlock()
	cause := make(map[netip.AddrPort]*verbs.RefusedError, 1)
	for _, e := range list {
		cause[withoutZone(e.Peer)] = e
	}
	for number, to := range p.peers.All() {
		attr := to.ah.Attr()
		e := cause[netip.AddrPortFrom(attr.DGID.Addr().WithZone(""), attr.UDPPort)]
		if e == nil {
			continue
		}
		to.refused, to.refusedAt = e, now
		p.Core.OnSendRefused(now, number)
		if p.opts.OnRefused != nil {
			p.opts.OnRefused(now, number, e)
		}
	}
}

// refusalValidity is the time in nanoseconds for which a refusal explains that
// a peer does not respond.
const refusalValidity = 1000 * reliability.Millisecond

// LastRefusal returns the error with which the system refused to send to a peer
// within the last second, or nil.
func (p *Port) LastRefusal(number int) error {
	to := p.peers.Find(number)
	if to == nil || to.refused == nil || p.Now() > to.refusedAt+refusalValidity {
		return nil
	}
	return to.refused
}

func withoutZone(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().WithZone(""), a.Port())
}

// isRefused reports whether wc is a datagram that the system refused to send.
// The packet is lost, and the queue pair remains usable.
func isRefused(wc *verbs.WC) bool {
	var refused *verbs.RefusedError
	return errors.As(wc.Err(), &refused)
}
