package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A selective is the state of an RC queue pair with selective retransmission, which both ends
// have agreed on: the responder keeps requests that arrive ahead of the expected one and reports
// them in selective acknowledgements, and the requester retransmits only those that are missing.
// PSNs are sent once in order; Core.next is therefore always Core.top. A queue pair that loses
// nothing has neither Scoreboards nor kept requests.
type selective struct {
	pool      *SelectivePool
	log       reliability.SendLog
	order     reliability.Reordering  // of requests
	requests  *reliability.Scoreboard // nil while not active
	responses *reliability.Scoreboard // of READs and atomics; nil while not active
	reads     *responsePath           // nil before the first response

	executed     wire.PSN // the peer has executed all requests before it
	logged       wire.PSN // all packets before it are in log
	arrivedBytes int      // window bytes of SENDs and WRITEs after una that have arrived
	lostBytes    int      // window bytes of SENDs and WRITEs that must be sent again
	delivered    int      // window bytes that arrived with the current packet
	probe        bool     // the oldest packet is to be sent again, to elicit an acknowledgement
	resent       bool     // there were retransmissions since a spurious one was last reported
	duplicates   uint16   // of the last selective acknowledgement
	copies       uint16   // packets that were sent twice on purpose, and not reported as duplicates yet

	bandwidth  reliability.Bandwidth
	losses     lossRate
	recovering bool     // until una reaches recovered: losses are likely
	recovered  wire.PSN // recoveryPSNs after the last loss

	ahead    int           // bytes that the peer may keep of requests that are not complete
	served   [4]wire.PSN   // of the last READ requests served, see isCopy
	serves   int           // number of them
	kept     *keptRequests // requests that arrived ahead, or nil
	repeated uint16        // requests that arrived again
	due      bool          // a selective acknowledgement is due
	urgent   bool          // a gap has begun: acknowledge without coalescing
}

// A responsePath has the estimates of the path of responses to READs and atomics.
type responsePath struct {
	order     reliability.Reordering
	bandwidth reliability.Bandwidth
}

// responsePath returns the estimates for responses.
func (s *selective) responsePath(now reliability.Time) *responsePath {
	if s.reads == nil {
		s.reads = &responsePath{}
		if rtt := s.order.Shortest(); rtt > 0 {
			s.reads.order.Sample(now, rtt)
		}
	}
	return s.reads
}

// maxKeptBytes bounds the memory of requests that arrived ahead. Further ones are dropped, as
// without selective retransmission.
const maxKeptBytes = 64 << 20

// maxAheadBytes bounds the bytes that the peer may have to keep of what is between una and next, so
// that it need not drop packets for maxKeptBytes.
const maxAheadBytes = maxKeptBytes - 1<<20

// keptBytes returns the bytes that the peer keeps of w at most, if all of it arrives ahead: all
// packets, but of a WRITE only the headers and the last packet.
func (c *Core) keptBytes(w *sendWQE) int {
	n := int(w.packetCount(c.mtu)) * PacketCost
	switch {
	case w.op == verbs.WRRDMARead:
		return PacketCost
	case c.splitsWrite(w):
		return n + int(min(c.mtu, w.length))
	}
	return n + int(w.length)
}

// enableSelective sets the mode when the address vector of the peer is set.
func (c *Core) enableSelective(av *verbs.AHAttr) {
	if c.typ == verbs.RC && c.state == sInit {
		c.dropSelective()
		if av.Selective && av.PeerBuffer > 0 {
			c.sel = &selective{pool: c.pool}
			if c.sel.pool == nil {
				c.sel.pool = new(SelectivePool)
			}
		}
	}
}

// dropSelective ends selective retransmission.
func (c *Core) dropSelective() {
	if s := c.sel; s != nil {
		s.freeScoreboards()
		s.dropKept()
		s.freeKept()
		c.sel = nil
	}
}

// resetRequester starts with una as the next PSN to send.
func (s *selective) resetRequester(una wire.PSN) {
	s.log = reliability.SendLog{}
	s.freeScoreboards()
	s.executed, s.logged = una, una
	s.arrivedBytes, s.lostBytes, s.probe, s.ahead = 0, 0, false, 0
}

// activeRequests returns the scoreboard of the requests. una is the oldest PSN in flight.
func (s *selective) activeRequests(una wire.PSN) *reliability.Scoreboard {
	if s.requests == nil {
		s.requests = s.pool.scoreboards.New(una, &s.log, &s.order, false)
	}
	return s.requests
}

// activeResponses returns the scoreboard of the responses.
func (s *selective) activeResponses(now reliability.Time, una wire.PSN) *reliability.Scoreboard {
	if s.responses == nil {
		s.responses = s.pool.scoreboards.New(una, &s.log, &s.responsePath(now).order, true)
	}
	return s.responses
}

// advanceScoreboards records that all packets before una are executed and answered.
func (s *selective) advanceScoreboards(una wire.PSN) {
	if s.requests != nil {
		s.requests = s.requests.Advance(una)
	}
	if s.responses != nil {
		s.responses = s.responses.Advance(una)
	}
}

// freeScoreboards forgets which packets have arrived or were lost.
func (s *selective) freeScoreboards() {
	s.requests.Free()
	s.responses.Free()
	s.requests, s.responses = nil, nil
}

// hasLost reports whether packets are to be sent again.
func (s *selective) hasLost() bool {
	_, requests := s.requests.Counts()
	_, responses := s.responses.Counts()
	return s.probe || requests+responses > 0
}

// bytesInFlight returns the bytes of the window that are in flight: sent, and neither acknowledged,
// arrived nor lost.
func (c *Core) bytesInFlight() int {
	n := c.unackedBytes()
	if c.sel != nil {
		arrived, lost := c.sel.responses.Counts()
		n = max(0, n-c.sel.arrivedBytes-c.sel.lostBytes-(arrived+lost)*PacketCost)
	}
	return n
}

// windowAllows reports whether n more bytes may follow inFlight bytes. With congestion control its
// window is the limit.
func (c *Core) windowAllows(inFlight, n int) bool {
	if c.sel == nil || inFlight == 0 || c.sending != nil {
		return c.window.Allows(inFlight, n)
	}
	return inFlight+n <= c.sel.bandwidth.Limit(c.window.Size(), c.roundTrip(), c.sel.recovering, recoveryGain)
}

// roundTrip returns the round trip in nanoseconds for the bandwidth-delay product: the smoothed one
// includes the delays of busy systems, without which the window would be too small, but also that of
// a queue on the path, hence the bound.
func (c *Core) roundTrip() int64 {
	shortest := c.sel.order.Shortest()
	return min(max(c.rtt.Smoothed(), shortest), shortest+min(shortest, maxSystemDelay))
}

// maxSystemDelay is the delay of busy systems in nanoseconds that a window allows for.
const maxSystemDelay = reliability.Millisecond

// The bytes in flight in units of the bandwidth-delay product while losses are repaired.
const (
	recoveryGain     = 1.25
	readRecoveryGain = 1.5
)

// readWindowAllows reports whether n more bytes of read responses may be requested.
func (c *Core) readWindowAllows(n int) bool {
	inFlight := int(c.rdBytes)
	if c.sel == nil || c.sel.reads == nil || inFlight == 0 {
		return c.readWindow.Allows(inFlight, n)
	}
	arrived, lost := c.sel.responses.Counts()
	inFlight = max(0, inFlight-(arrived+lost)*int(c.mtu))
	if c.reading != nil {
		return c.readWindow.Allows(inFlight, n)
	}
	return inFlight+n <= c.sel.reads.bandwidth.Limit(c.readWindow.Size(), c.sel.order.Shortest(), c.sel.recovering, readRecoveryGain)
}

// spanAllows reports whether psns more PSNs may be in flight.
func (c *Core) spanAllows(psns int) bool {
	return c.sel == nil || c.top.Sub(c.una)+psns <= reliability.MaxSpan && min(c.sel.ahead, c.unackedBytes()) < maxAheadBytes
}

// logSent records the time at which the packets that were just built are sent.
func (c *Core) logSent(now reliability.Time) {
	if s := c.sel; s != nil && s.logged != c.top {
		s.log.Record(c.una, c.top, now)
		s.logged = c.top
	}
}

// readDepth returns the number of READs and atomics that may be outstanding for an attribute, which has
// 8 bits: with selective retransmission 16 times as many, because a long path holds more.
func (c *Core) readDepth(attr uint8) int {
	if c.sel != nil {
		return 16 * int(attr)
	}
	return int(attr)
}

// requestAt returns the started request whose PSNs include p, and its index, or nil.
func (c *Core) requestAt(p wire.PSN) (uint32, *sendWQE) {
	n := c.cur - c.sq.head
	if c.cur != c.sq.tail && c.sq.wqeAt(c.cur).started {
		n++
	}
	lo, hi := uint32(0), n
	for lo < hi {
		mid := (lo + hi) / 2
		if c.sq.wqeAt(c.sq.head + mid).last.Less(p) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for ; lo < n; lo++ {
		i := c.sq.head + lo
		if w := c.sq.wqeAt(i); !w.isLocal() {
			if p.Less(w.first) {
				return 0, nil
			}
			return i, w
		}
	}
	return 0, nil
}

// isRequestPacket reports whether there is a request packet with PSN p, which belongs to w.
func (c *Core) isRequestPacket(w *sendWQE, p wire.PSN) bool {
	return w.op != verbs.WRRDMARead || uint32(p.Sub(w.first))*c.mtu%c.readPart == 0
}

// packetBytes returns the window bytes of the packet of w with PSN p.
func (c *Core) packetBytes(w *sendWQE, p wire.PSN) int {
	return int(c.windowPosition(w, p.Add(1)) - c.windowPosition(w, p))
}

// recoveryPSNs is the number of PSNs after a loss for which another one is expected.
const recoveryPSNs = 8192

// onLoss prepares for further losses: the next messages request acknowledgements, probes leave
// early, and no queue builds up on the path.
func (c *Core) onLoss() {
	c.cautious = cautiousMessages
	c.rtt.StopTiming()
	c.sel.recovering, c.sel.recovered = true, c.top.Add(recoveryPSNs)
	c.retry.SetEarlyProbes(true)
}

// checkRecovered ends the preparations of onLoss.
func (c *Core) checkRecovered() {
	if c.sel.recovering && c.sel.recovered.LessEq(c.una) {
		c.sel.recovering = false
		c.retry.SetEarlyProbes(false)
	}
}

// A lossRate measures the part of the packets that are lost. Random loss is repaired, but a high
// rate means that the path or the peer's buffer is too small for the window.
type lossRate struct {
	lost, arrived int // bytes
	before        int // bytes that arrived in the round trip before: losses are found after later arrivals
	since         reliability.Time
}

// maxRandomLoss is the loss in percent that does not shrink the window.
const maxRandomLoss = 20

// exceeded reports, at most once a round trip of rtt nanoseconds and for at least least bytes,
// whether the loss exceeds maxRandomLoss.
func (l *lossRate) exceeded(now reliability.Time, rtt int64, least int) bool {
	if l.lost+l.arrived < least || int64(now-l.since) < rtt {
		return false
	}
	exceeded := l.lost*100 > maxRandomLoss*(l.lost+max(l.arrived, l.before))
	*l = lossRate{since: now, before: l.arrived}
	return exceeded
}
