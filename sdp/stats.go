package sdp

import (
	"iter"
	"time"

	"github.com/softrnic/softrnic/internal/counters"
)

// Stats are the counters and the current levels of a connection. [Conn.MeasureBufferUse] measures
// levels over time.
type Stats struct {
	FlowControl FlowControl

	// Bytes of the application: accepted by Writes, and returned by Reads.
	BytesWritten, BytesRead uint64

	// Data messages, and the bytes of the received ones. Zero-copy transfers use none.
	MessagesSent, MessagesReceived uint64
	BytesReceived                  uint64

	Controls      uint64 // messages sent without data
	CreditUpdates uint64 // messages of either kind that advertised receives
	Coalesced     uint64 // Writes whose first bytes were coalesced with earlier ones
	Stalls        uint64 // times that a Write blocked on the send buffer or on credits

	// Buffer levels and the size of either buffer, in bytes. Written bytes occupy the send buffer
	// until the peer's adapter is known to have acknowledged them; for the last bytes, that is
	// known only after another Write or CloseWrite. Received bytes occupy the receive buffer from
	// the handling of their completion until they are read. Held is the part of SendUsed that is
	// not posted, in order to coalesce it.
	SendUsed, Held, ReceiveUsed int
	BufferSize                  int

	// Credits is the number of data messages for which the peer has advertised receives; 0 with
	// NIC, where only the adapters know. Receives is the number of posted receives.
	Credits, Receives int

	// RNR NAKs sent because a message found no receive here, and received because one found none
	// at the peer. With NIC flow control messages wait in the adapter for a credit
	// (CreditStalls), with occasional probes. All are 0 if the device has no such counters, as
	// package rnic has.
	RNRSent, RNRReceived, CreditStalls uint64

	Registered int // bytes of registered memory of the connection

	// Zero-copy transfers in bytes, and offers of memory: to read (SrcAvail) and to write to
	// (SinkAvail). OffersRefused counts offers that the peer refused or did not read in time,
	// SinksCrossed those that crossed with data.
	//
	// An offer that is not read within Options.OfferTime or the Write's deadline is canceled, and
	// the bytes are copied. It counts as refused unless the peer has read all of it; ZeroCopySent
	// includes the bytes that the peer has read.
	ZeroCopySent, ZeroCopyReceived uint64
	Offers, OffersRefused          uint64
	Sinks, SinksCrossed            uint64
}

// All returns an iterator over the names and values of all counters and levels: "bytes_written",
// "send_used" and so on.
func (s Stats) All() iter.Seq2[string, uint64] { return counters.All(s) }

// Stats returns a snapshot, which is constant once the connection is closed.
func (c *Conn) Stats() Stats {
	if !c.isOpen() {
		return Stats{}
	}
	s := c.snapshot()
	if a, ok := c.qp.(hwCounter); ok {
		s.RNRSent, _ = a.HWCounter("send_rnr_err")
		s.RNRReceived, _ = a.HWCounter("rcvd_rnr_err")
		s.CreditStalls, _ = a.HWCounter("credit_stalls")
	}
	return s
}

// snapshot returns the statistics without the adapter's counters.
func (c *Conn) snapshot() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.core.Levels()
	s := Stats{
		FlowControl: FlowControl(c.flowControl), Coalesced: c.coalesced, Stalls: c.stalls,
		SendUsed: l.Send, Held: l.Held, ReceiveUsed: l.Receive, BufferSize: l.Size, Credits: l.Credits, Receives: l.Receives,
	}
	counters.Add(&s, c.core.Stats())
	for _, mr := range c.regions {
		s.Registered += len(mr.Bytes())
	}
	return s
}

// An hwCounter is a queue pair with adapter counters.
type hwCounter interface {
	HWCounter(name string) (uint64, bool)
}

// MeasureBufferUse starts to measure the use of the buffers. stop ends the measurement and returns
// the result. At most one measurement exists: another call ends the previous one. Each API call
// reads the clock meanwhile.
func (c *Conn) MeasureBufferUse() (stop func() BufferUse) {
	if !c.isOpen() {
		return func() BufferUse { return BufferUse{} }
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &meter{began: time.Now()}
	m.since = m.began
	m.level = c.core.Levels()
	c.meter = m
	return func() BufferUse {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.meter == m {
			c.recordBufferUse()
			c.meter = nil
		}
		return m.average()
	}
}

// recordBufferUse records the current levels if a measurement is active.
func (c *Conn) recordBufferUse() {
	if c.meter != nil {
		c.meter.record(time.Now(), c.core.Levels())
	}
}
