package rnic

import (
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/wire"
)

// A caller identifies on whose behalf the socket is read. It decides whether
// pending acknowledgements may wait to be piggybacked on a reply.
type caller struct {
	cq     *completionQueue // queue of a poller or waiter, which may reply to a completion
	memory bool             // a loop that polls memory, which may reply, too
}

// mayReply reports whether the application is about to get a message that it
// may reply to. Then the acknowledgement leaves behind the reply, with the next
// poll, or by the service.
func (c caller) mayReply() bool {
	return c.memory || c.cq != nil && c.cq.ready.Load() > 0
}

const (
	// ackPackets is the maximum number of packets handled per acknowledgement
	// while more keep arriving.
	ackPackets = 64
	// After at least streamPackets packets since the last acknowledgement, the
	// next one is deferred for streamPolls empty reads of about 0.25 us each:
	// more packets may follow, and each acknowledgement saved is a system call
	// less at both ends.
	streamPackets = 8
	streamPolls   = 6
)

// maxAckInterval returns ackPackets reduced for a receive buffer of the given
// size in bytes. Peers keep less than the buffer in flight, so that a small
// buffer needs more frequent acknowledgements.
func maxAckInterval(buffer int) int {
	return min(max(buffer/8/qp.MaxMTU, 2), ackPackets)
}

// adaptAckInterval ends a burst: a read has found nothing while an
// acknowledgement is pending. The peer may have filled its window and wait for
// the acknowledgement, so the next one is sent after half as many packets, and
// the peer sends on while the second half is handled. A peer that never stalls
// makes bursts so long that the interval stays at its maximum. With a shortened
// interval, the end of a burst is not deferred either, see deferAcks. The middle
// of a message says nothing about the window.
func (s *shard) adaptAckInterval() {
	run := s.burstPackets
	s.burstPackets = 0
	if run >= streamPackets && s.ackQueueLen.Load() > 0 && !s.onlyMidMessageAck() {
		s.ackEvery = min((s.ackEvery+max(run/2, streamPackets)+1)/2, s.maxAckEvery)
	}
}

// cheapPollsPerPoll is the number of reads without a system call that count as one empty read, whose
// cost the numbers of empty reads elsewhere assume.
const cheapPollsPerPoll = 4

// pollSocket reads the socket once, handles the packets and due timers, and
// returns the number of packets. Acknowledgements leave when the socket is
// empty, so that one acknowledges a whole burst. The token is held.
func (s *shard) pollSocket(c caller) int {
	s.flushCorked()
	if s.streams.tcp != nil {
		return s.pollStreams()
	}
	n, err := s.conn.ReadBatch(s.rx)
	if err != nil {
		s.dev.linkFailed(err)
		return 0
	}
	if list := s.rx.Refusals(); len(list) > 0 {
		s.dev.handleICMP(list)
	}
	if n == 0 {
		if s.rx.Cheap && !s.hasBacklog.Load() {
			if s.cheapPolls++; s.cheapPolls%cheapPollsPerPoll != 0 {
				return 0
			}
		}
		s.emptyPolls++
		if !s.hasBacklog.Load() && !s.timerDue() && (s.ackQueueLen.Load() == 0 || s.deferAcks()) {
			if s.ackQueueLen.Load() == 0 {
				s.burstPackets = 0
			}
			return 0
		}
	} else {
		s.emptyPolls = 0
	}
	now := s.dev.now()
	s.mu.Lock()
	if s.dev.unusable.Load() { // Close guarantees that memory is no longer accessed
		s.mu.Unlock()
		return 0
	}
	s.flushZeroCopy()
	packets := 0
	for i := range n {
		packets += s.handleDatagram(now, &s.rx.Msgs()[i])
	}
	if t := s.nextTimer.Load(); t != 0 && int64(now) >= t {
		s.runTimers(now, n == 0 || s.timersOverdue(now))
	} else {
		s.timersDeferredSince = 0
	}
	s.drainActive(now)
	s.packetsSinceAck += packets
	s.burstPackets += packets
	s.streaming = s.packetsSinceAck >= streamPackets && s.ackEvery == ackPackets && !s.dev.options.NoService
	if n == 0 {
		s.adaptAckInterval()
	}
	due := s.packetsSinceAck >= s.ackInterval()
	if n == 0 || due && (s.ackDeferred || !c.mayReply()) {
		s.drainAcks(now)
	} else if due {
		s.ackDeferred = true // until the application replies or polls
	}
	s.flush()
	s.unlock()
	return packets
}

// ackInterval returns the number of packets per acknowledgement in force.
func (s *shard) ackInterval() int {
	if s.onlyMidMessageAck() {
		return s.maxAckEvery
	}
	return s.ackEvery
}

// onlyMidMessageAck reports whether the only pending acknowledgement is for the
// middle of a message. The peer does not wait for it: it may have more than
// maxAckEvery packets in flight, and the rest of the message follows.
func (s *shard) onlyMidMessageAck() bool {
	return len(s.ackQueue) == 1 && s.ackQueue[0].core.MidMessage()
}

// deferAcks reports whether pending acknowledgements should wait although the
// socket is empty. Without a further poll the service sends them. A leader that
// shares its processor may not poll again for long, so it does not defer.
func (s *shard) deferAcks() bool {
	return s.streaming && s.emptyPolls < streamPolls && !(s.leaderSpinner.Shared && s.leader.Load() != nil)
}

// timerPolls is the number of empty reads per clock reading.
const timerPolls = 16

// timerDue reports whether a queue pair's timer has expired. During consecutive
// empty reads it reads the clock only every timerPolls calls.
func (s *shard) timerDue() bool {
	t := s.nextTimer.Load()
	if t == 0 || s.emptyPolls%timerPolls != 0 && !s.dev.options.NoService {
		return false
	}
	return int64(s.dev.now()) >= t
}

// maxTimerDeferral is the maximum time in nanoseconds that expired timers are
// deferred until the socket is empty: the time to handle a full receive buffer.
const maxTimerDeferral = 20 * reliability.Millisecond

// timersOverdue reports whether expired timers have been deferred for
// maxTimerDeferral. They are deferred at all because after a pause of the
// process, the acknowledgements they wait for may be in the socket.
func (s *shard) timersOverdue(now reliability.Time) bool {
	if s.timersDeferredSince == 0 {
		s.timersDeferredSince = now
	}
	return now-s.timersDeferredSince > maxTimerDeferral
}

// handleDatagram handles the packets of one datagram and returns their number.
// Token and lock are held.
func (s *shard) handleDatagram(now reliability.Time, d *link.Datagram) int {
	shared := s.dev.member != nil && !s.decapsulatePacket(d)
	n := d.Count()
	flow := s.flows.get(d.Src)
	p := &s.pkt
	p.Src, p.Dst, p.TOS, p.HopLimit, p.FlowLabel = d.Src, s.flows.local, d.TOS, d.HopLimit, d.FlowLabel
	var q *queuePair
	for i := range n {
		raw := d.Packet(i)
		if shared && s.forwardPacket(d, i) {
			continue
		}
		drop := wire.DropNone
		if d.Unstable {
			drop = p.ParseUnstable(raw, &s.headers)
		} else {
			drop = p.Parse(raw)
		}
		if drop != wire.DropNone {
			s.dev.drops.count(drop)
			continue
		}
		if !d.Unsealed && !s.checkICRC(flow, raw, d.ID+uint16(i)) {
			continue
		}
		if q == nil || q.num != p.BTH.DestQPN {
			if q = s.dev.qps.lookup(p.BTH.DestQPN); q == nil {
				s.dev.drops.count(wire.DropUnknownQPN)
				continue
			}
		}
		s.handlePacket(now, q, p)
	}
	return n
}

// checkICRC checks the ICRC of a packet with its identification: a sender with segmentation offload
// numbers the packets of a group.
func (s *shard) checkICRC(f *flow, raw []byte, id uint16) bool {
	switch f.checkICRC(raw, id) {
	case wire.ICRCBad:
		s.dev.drops.count(wire.DropBadICRC)
		return false
	case wire.ICRCMember:
		s.dev.drops.icrcMember.Add(1)
	}
	return true
}

// handlePacket passes a packet to its queue pair, which may belong to another
// shard if the kernel's steering missed. s.mu is held, and released meanwhile
// in that case.
func (s *shard) handlePacket(now reliability.Time, q *queuePair, p *wire.Packet) {
	o, written := q.shard, false
	if o != s {
		s.mu.Unlock()
		o.mu.Lock()
		o.flushZeroCopy()
	}
	if q.closed {
		s.dev.drops.count(wire.DropUnknownQPN)
	} else {
		if o.icm != nil {
			o.icm.loadContext(q.num)
		}
		if drop := q.core.HandlePacket(now, p); drop != wire.DropNone {
			s.dev.drops.count(drop)
		} else if s.dev.memoryWaiters.exist() && writesMemory(p.BTH.Opcode) {
			written = true
		}
		o.markActive(q)
	}
	if o != s {
		o.drainActive(now)
		o.drainAcks(now)
		o.flush()
		o.mu.Unlock()
		s.mu.Lock()
		s.flushZeroCopy()
	}
	if written {
		s.memoryWritten = true
	}
}
