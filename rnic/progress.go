package rnic

import (
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/wire"
)

// caller says on whose behalf a look at the socket is taken. It decides how
// long an owed acknowledgement may wait for company.
type caller struct {
	cq     *CQ  // a poller or waiter of this queue: it may reply to what it finds
	memory bool // a loop that watches memory: it may reply, too
}

// mayReply reports whether the application is about to get something that it
// may answer: then the acknowledgement leaves behind the answer, or when the
// application comes back, or the service sends it.
func (c caller) mayReply() bool {
	return c.memory || c.cq != nil && c.cq.ready.Load() > 0
}

const (
	// ackPackets is how many packets are handled at most, while more keep
	// coming, before the acknowledgements leave.
	ackPackets = 64
	// A stream of at least streamPackets since the last acknowledgement is
	// worth some empty looks, of a quarter of a microsecond each: more may be
	// about to come, and one acknowledgement less is a system call less on
	// either side.
	streamPackets = 8
	streamPolls   = 6
)

// maxAckInterval is ackPackets for a receive buffer of so many bytes. Peers keep
// less than the buffer in flight, so a small one wants acknowledgements more
// often, or they wait for one.
func maxAckInterval(buffer int) int {
	return min(max(buffer/8/qp.MaxMTU, 2), ackPackets)
}

// adaptAckInterval is when a look has found nothing, after a run of packets, and somebody wants an
// acknowledgement. Perhaps a peer has sent all that it may and waits for one: the next time
// it gets that after half as many packets, and goes on while the second half is handled here.
// A peer that never waits keeps coming, and makes runs so long that it gets as few as before.
// Nor does the end of a run wait for company (patient) while peers are thought to wait.
func (s *shard) adaptAckInterval() {
	run := s.burstPackets
	s.burstPackets = 0
	if run >= streamPackets && s.ackQueueLen.Load() > 0 {
		s.ackEvery = min((s.ackEvery+max(run/2, streamPackets)+1)/2, s.maxAckEvery)
	}
}

// pollSocket takes one look at the socket, handles what came, and returns the number
// of packets. Acknowledgements that are owed leave when there is nothing more
// to read, so that one stands for all that came at a stretch. The token is
// held.
func (s *shard) pollSocket(c caller) int {
	s.flushCorked()
	n, err := s.conn.ReadBatch(s.rx)
	if err != nil {
		s.dev.linkFailed(err)
		return 0
	}
	if list := s.rx.Refusals(); len(list) > 0 {
		s.dev.handleICMP(list)
	}
	if n == 0 {
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
	if s.dev.unusable.Load() { // Close promises that memory is not touched any more
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
	s.received += uint64(packets)
	if n == 0 {
		if s.onlyMidMessageAck() {
			s.burstPackets = 0 // no news of what this peer waits for
		} else {
			s.adaptAckInterval()
		}
	}
	every := s.ackInterval()
	switch {
	case n == 0 || s.packetsSinceAck >= every && (s.ackDeferred || !c.mayReply()):
		s.drainAcks(now)
	case s.packetsSinceAck >= every:
		s.ackDeferred = true // until the application replies or comes back
	}
	s.flush()
	s.mu.Unlock()
	return packets
}

// ackInterval is after how many packets acknowledgements leave now.
func (s *shard) ackInterval() int {
	if s.onlyMidMessageAck() {
		return s.maxAckEvery
	}
	return s.ackEvery
}

// onlyMidMessageAck reports whether the only one that is owed is for the middle of a message. Nobody
// waits for it: an adapter like ours may have more than ackMost packets in flight, and the rest
// is coming.
func (s *shard) onlyMidMessageAck() bool {
	return len(s.ackQueue) == 1 && s.ackQueue[0].core.AmidMessage()
}

// deferAcks reports whether owed acknowledgements should wait although there is
// nothing to read. Should nobody look again, the service sends them. A leader who shares his
// processor may not look again for long.
func (s *shard) deferAcks() bool {
	return s.streaming && s.emptyPolls < streamPolls && !(s.cpuShared && s.leader.Load() != nil)
}

// timerPolls is how many empty looks share one look at the clock.
const timerPolls = 16

// timerDue reports whether a queue pair's time has come. While a poller finds
// nothing, look after look, it asks the clock only now and then.
func (s *shard) timerDue() bool {
	t := s.nextTimer.Load()
	if t == 0 || s.emptyPolls%timerPolls != 0 && !s.dev.options.NoService {
		return false
	}
	return int64(s.dev.now()) >= t
}

// maxTimerDeferral is the maximum time that expired timers wait for the socket to be empty, in nanoseconds: as
// long as it takes to handle what a large receive buffer holds.
const maxTimerDeferral = 20 * reliability.Millisecond

// timersOverdue reports whether timers that are due should wait no longer for a look that finds
// nothing. After the process has not run for a while, what they wait for is in the socket.
func (s *shard) timersOverdue(now reliability.Time) bool {
	if s.timersDeferredSince == 0 {
		s.timersDeferredSince = now
	}
	return now-s.timersDeferredSince > maxTimerDeferral
}

// handleDatagram handles the packets of one datagram. Token and lock are held.
func (s *shard) handleDatagram(now reliability.Time, d *link.Datagram) int {
	n := d.Count()
	flow := s.flows.get(d.Src)
	p := &s.pkt
	p.Src, p.Dst, p.TOS, p.HopLimit, p.FlowLabel = d.Src, s.flows.local, d.TOS, d.HopLimit, d.FlowLabel
	var q *QP
	for i := range n {
		raw := d.Packet(i)
		if drop := p.Parse(raw); drop != wire.DropNone {
			s.dev.drops.count(drop)
			continue
		}
		// A sender with segmentation offload numbers the packets of a group.
		switch flow.checkICRC(raw, d.ID+uint16(i)) {
		case wire.ICRCBad:
			s.dev.drops.count(wire.DropBadICRC)
			continue
		case wire.ICRCMember:
			s.dev.drops.icrcMember.Add(1)
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

// handlePacket hands a packet to its queue pair, which may live on another shard if
// the kernel's steering did not know better.
func (s *shard) handlePacket(now reliability.Time, q *QP, p *wire.Packet) {
	o := q.shard
	if o != s {
		s.mu.Unlock()
		o.mu.Lock()
		o.flushZeroCopy()
	}
	if q.destroyed {
		s.dev.drops.count(wire.DropUnknownQPN)
	} else {
		if o.icm != nil {
			o.icm.loadContext(q.num)
		}
		if drop := q.core.HandlePacket(now, p); drop != wire.DropNone {
			s.dev.drops.count(drop)
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
}
