package rnic

import (
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// The link reports packets by destination and head. They belong to the connected
// queue pair with that peer, or to the queue pair of datagrams that sent them.

// A peerKey identifies the peer of a connected queue pair.
type peerKey struct {
	dst netip.AddrPort
	qpn uint32
}

// newPeerKey returns the key of a peer, without the zone that addresses
// reported by the kernel may have.
func newPeerKey(dst netip.AddrPort, qpn uint32) peerKey {
	return peerKey{netip.AddrPortFrom(dst.Addr().WithZone(""), dst.Port()), qpn}
}

// groupByPeer groups the indices of refusals: those of connected queue pairs by
// peer, and those of datagrams.
func groupByPeer(list []link.Refusal) (connected map[peerKey][]int, datagrams []int) {
	for i := range list {
		head := list[i].Head()
		if len(head) < wire.BTHLen {
			continue
		}
		bth := wire.ParseBTH(head)
		switch info := bth.Opcode.Info(); {
		case !info.Valid:
		case info.Class == wire.ClassUD || info.Class == wire.ClassUDX:
			datagrams = append(datagrams, i)
		default:
			if connected == nil {
				connected = make(map[peerKey][]int)
			}
			k := newPeerKey(list[i].Dst, bth.DestQPN)
			connected[k] = append(connected[k], i)
		}
	}
	return connected, datagrams
}

// handleRefusals passes refused packets to the queue pairs of the shard. s.mu
// is held, and the batch must not refer to user memory.
func (s *shard) handleRefusals(now reliability.Time, list []link.Refusal) {
	connected, datagrams := groupByPeer(list)
	for _, i := range datagrams {
		r := &list[i]
		if len(r.Head()) < wire.BTHLen+wire.DETHLen {
			continue
		}
		q := s.dev.qps.lookup(wire.ParseDETH(r.Head()[wire.BTHLen:]).SrcQPN)
		if q == nil || q.shard != s || q.closed {
			continue
		}
		refusal := refusedError(r)
		q.handleRefusal(now, r, refusal)
		if q.onRefusal != nil && !refusal.Transient() {
			q.onRefusal(refusal)
		}
	}
	if connected == nil {
		return
	}
	s.dev.qps.forEach(func(q *queuePair) {
		if q.shard != s || q.closed || q.datagram {
			return
		}
		path := q.core.PeerPath()
		for _, i := range connected[newPeerKey(path.Dst, q.core.Query().DestQPN)] {
			q.handleRefusal(now, &list[i], refusedError(&list[i]))
		}
	})
}

// handleRefusal passes one refused packet to the core. The shard's lock is
// held.
func (q *queuePair) handleRefusal(now reliability.Time, r *link.Refusal, refusal *verbs.RefusedError) {
	q.core.OnSendRefused(now, r.Head(), refusal)
	if q.overran || q.core.HasPendingAck() {
		q.shard.deferDrain(q, now)
	}
	if response := !q.datagram && !wire.ParseBTH(r.Head()).Opcode.Info().Request; response && !q.refusalLogged && isSilentLoss(refusal) {
		q.refusalLogged = true
		q.dev.deferLog(func(log *slog.Logger) {
			log.Warn("responses refused by the system", "device", q.dev.name, "qp", fmt.Sprintf("0x%x", q.num), "cause", refusal)
		})
	}
	q.shard.armTimer(q)
}

// isSilentLoss reports whether the peer does not learn of the loss of a
// response. An ICMP error means that the peer is unreachable, and the core
// reports a response that is too large.
func isSilentLoss(refusal *verbs.RefusedError) bool {
	return !refusal.ICMP && !refusal.Transient() && !refusal.TooLarge()
}

// refusedError converts a link's report.
func refusedError(r *link.Refusal) *verbs.RefusedError {
	return &verbs.RefusedError{Peer: r.Dst, Err: r.Err, ICMP: r.ICMP, Size: r.Size, MTU: r.MTU}
}

// handleICMP passes ICMP errors to the queue pairs of all shards, because the
// kernel may not steer them to the shard that sent the packet. No lock is held.
func (d *Device) handleICMP(list []link.Refusal) {
	now := d.now()
	for _, s := range d.shards {
		s.mu.Lock()
		if !d.unusable.Load() {
			s.flushZeroCopy()
			s.handleRefusals(now, list)
		}
		s.unlock()
	}
}

// confirmSent completes the datagrams that have left with the batch. s.mu is
// held.
func (s *shard) confirmSent() {
	for i, q := range s.unconfirmed {
		q.confirmPending = false
		s.unconfirmed[i] = nil
		if q.closed {
			continue
		}
		q.core.ConfirmSent()
		if q.overran || q.sendBlocked {
			q.sendBlocked = false
			s.deferDrain(q, s.dev.now())
		}
	}
	s.unconfirmed = s.unconfirmed[:0]
}

// OnRefusal implements adapter.RefusalReporter.
func (q *queuePair) OnRefusal(f func(*verbs.RefusedError)) {
	q.shard.mu.Lock()
	q.onRefusal = f
	q.shard.mu.Unlock()
}
