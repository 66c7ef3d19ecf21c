package qp

import (
	"github.com/softrnic/softrnic/internal/congestion"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/wire"
)

// A rateControl is the congestion control of an RC queue pair: of the packets with data that it
// sends, and of the read responses that it requests. Without a controller the windows of package
// reliability are the only limits.
type rateControl struct {
	mode     congestion.Mode
	sending  congestion.Controller // or nil
	reading  congestion.Controller // or nil; its window limits the data of outstanding reads
	resumeAt reliability.Time      // the pacer lets the next packet pass, or 0 if it does not wait

	// Responses and requests share the pacer. After a response requests have the next turn, so that a
	// stream of responses does not hold back a retransmission until its retries are exhausted.
	requestsFirst bool
}

// ecnCapable is ECT(0) of RFC 3168: switches may mark the packet instead of dropping it.
const ecnCapable = 2

// startRateControl starts congestion control when the windows have been reset. Packets to peers
// that are known to send notifications are ECN-capable; others get the bytes they always got.
func (c *Core) startRateControl() {
	c.stopRateControl()
	if c.mode == congestion.Off {
		return
	}
	packet := int(c.mtu) + PacketCost
	c.sending = congestion.New(c.mode, congestion.Config{Packet: packet, MaxWindow: c.window.Size()})
	c.window.SetSize(c.sending.Window())
	if c.mode != congestion.DCQCN {
		c.reading = congestion.New(congestion.Delay, congestion.Config{Packet: int(c.mtu), MaxWindow: c.readWindow.Size()})
		c.readWindow.SetSize(c.reading.Window())
	}
	if c.mode != congestion.Delay && (c.softrnicPeer || c.mode == congestion.DCQCN) && c.path.TrafficClass&ecnMask == 0 {
		c.path.TrafficClass |= ecnCapable
	}
}

// stopRateControl discards the controllers.
func (c *Core) stopRateControl() { c.sending, c.reading, c.resumeAt = nil, nil, 0 }

// mayPace reports whether the pacer lets the next packet with data pass. If not, Drain is due at
// resumeAt.
func (c *Core) mayPace(now reliability.Time) bool {
	return c.sending == nil || c.askPacer(now)
}

// askPacer is mayPace of a queue pair with a controller. It is apart so that mayPace is inlined.
func (c *Core) askPacer(now reliability.Time) bool {
	if at := c.sending.NextSend(now); at > now {
		if c.resumeAt == 0 {
			c.counters.PacingStalls++
		}
		c.resumeAt = at
		return false
	}
	c.resumeAt = 0
	return true
}

// onDataSent records a packet with n bytes of data that was built, of a response or a request.
func (c *Core) onDataSent(now reliability.Time, n int, response bool) {
	if c.sending != nil {
		c.sending.OnSent(now, n+PacketCost)
		c.requestsFirst = response
	}
}

// onDataAcked grows the window after an acknowledgement of n bytes.
func (c *Core) onDataAcked(now reliability.Time, inFlight, n int) {
	if c.sending == nil {
		c.window.OnAck(n)
		return
	}
	c.sending.OnAck(now, congestion.Ack{Bytes: n, InFlight: inFlight, RTT: c.rtt.TakeSample()})
	c.window.SetSize(c.sending.Window())
}

// onReadArrived grows the window of reads after n bytes of a response.
func (c *Core) onReadArrived(now reliability.Time, inFlight, n int) {
	if c.reading == nil {
		c.readWindow.OnAck(n)
		return
	}
	c.reading.OnAck(now, congestion.Ack{Bytes: n, InFlight: inFlight, RTT: c.rtt.TakeSample()})
	c.readWindow.SetSize(c.reading.Window())
}

// onDataLost shrinks the window because a packet was lost.
func (c *Core) onDataLost(now reliability.Time) {
	if c.sending == nil {
		c.window.OnLoss(now, c.rtt.Smoothed())
	} else {
		c.recordReduction(now, c.sending.OnLoss(now), lossSeen)
	}
}

// onReadLost shrinks the window of reads because a response was lost.
func (c *Core) onReadLost(now reliability.Time) {
	if c.reading == nil {
		c.readWindow.OnLoss(now, c.rtt.Smoothed())
	} else {
		c.reading.OnLoss(now)
		c.readWindow.SetSize(c.reading.Window())
	}
}

// onNoResponse shrinks the windows to their minimum, because no response arrived at all.
func (c *Core) onNoResponse(now reliability.Time) {
	if c.sending == nil {
		c.window.OnTimeout(now)
	} else {
		c.sending.OnTimeout(now)
		c.recordReduction(now, true, timeoutSeen)
	}
	if c.reading == nil {
		c.readWindow.OnTimeout(now)
	} else {
		c.reading.OnTimeout(now)
		c.readWindow.SetSize(c.reading.Window())
	}
}

// onNotification handles a congestion notification.
func (c *Core) onNotification(now reliability.Time) {
	c.counters.CNPReceived++
	if c.sending == nil {
		c.window.OnLoss(now, max(c.rtt.Smoothed(), cnpSpacing))
		return
	}
	c.recordReduction(now, c.sending.OnMark(now), markSeen)
}

// A reductionCause is the reason of a record of a reduced rate.
type reductionCause uint8

const (
	markSeen reductionCause = iota
	lossSeen
	timeoutSeen
)

var reductionCauses = [...]string{"a congestion notification", "a lost packet", "a timeout"}

// recordReduction takes the window of the controller and records that it was reduced.
func (c *Core) recordReduction(now reliability.Time, reduced bool, cause reductionCause) {
	c.window.SetSize(c.sending.Window())
	if !reduced {
		return
	}
	c.counters.RateReductions++
	kbit := min(c.sending.Rate()*8/1000, 1<<32-1)
	c.recorder.addRecord(record{at: now, kind: recordRate, aux: uint8(cause), psn: wire.PSN(kbit)})
}

// stopTiming discards the timed packet, which is being retransmitted, unless as a probe with
// congestion control: a round trip that has grown beyond the timeout of probes, because a queue has,
// would never be measured. If the packet was lost, the sample is too long by that timeout.
func (c *Core) stopTiming(probe bool) {
	if !probe || c.sending == nil {
		c.rtt.StopTiming()
	}
}
