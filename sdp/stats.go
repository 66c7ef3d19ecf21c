package sdp

// Stats is what a connection has done since it began, and what it holds at the
// moment; [Conn.MeasureUse] tells what it held over a time.
type Stats struct {
	Design FlowControl

	// The application's bytes: what Writes have taken and Reads have given.
	BytesWritten, BytesRead uint64

	// Messages with data, and what they carried of the peer's bytes. Zero-copy
	// needs none.
	MessagesSent, MessagesReceived uint64
	BytesReceived                  uint64

	Controls      uint64 // messages without data that were sent
	CreditUpdates uint64 // messages of either kind that told the peer of our receives
	Coalesced     uint64 // Writes whose first bytes left in one message with the bytes of earlier ones
	Stalls        uint64 // times that a Write waited for room in the send buffer or for credits

	// Buffers, in bytes: what is used of each, and the size of either. Bytes
	// use the send buffer until it is known that the peer's adapter has them (of
	// the last ones not before more is written, or CloseWrite called), and the receive
	// buffer from the time that SDP has seen them until they are read. Held
	// is what of SendUsed SDP has not given to the adapter, to coalesce it.
	SendUsed, Held, ReceiveUsed int
	BufferSize                  int

	// Credits are the messages with data that may be sent, by the peer's last
	// word. With NIC flow control the adapters know, and it is 0. Receives are
	// those that we have posted for the peer.
	Credits, Receives int

	// RNR NAKs: sent because a message found no receive of ours, received
	// because one of ours found none. With NIC flow control messages wait in the
	// adapter for a credit, CreditStalls times, and one asks now and then whether there
	// is a receive. All are 0 where the device does not tell (see rnic.QP.HWCounter).
	RNRSent, RNRReceived, CreditStalls uint64

	Registered int // bytes of the connection's own memory that the adapter has registered

	// Zero-copy, in bytes, and in the messages that arrange it: memory that
	// was offered to the peer to read (SrcAvail), or to write to (SinkAvail),
	// and what of these came to nothing: OffersRefused because the peer preferred
	// copies or did not read in time, SinksCrossed because data was under way already.
	//
	// An offer that nobody has read within Options.OfferTime, or until the deadline of
	// the Write, is taken back, and the bytes go as copies. It counts as refused
	// unless the peer has read all of it after all; what it has read of it is in
	// ZeroCopySent.
	ZeroCopySent, ZeroCopyReceived uint64
	Offers, OffersRefused          uint64
	Sinks, SinksCrossed            uint64
}

// counts are what the core cannot know.
type counts struct {
	stalls, coalesced uint64
}

// Stats returns the counts, which keep their last values when the connection is
// closed.
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

// snapshot is what is known here.
func (c *Conn) snapshot() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, l := c.core.Stats(), c.core.Levels()
	s := Stats{
		Design:       c.flowControl,
		BytesWritten: n.BytesWritten, BytesRead: n.BytesRead,
		MessagesSent: n.Messages, MessagesReceived: n.MessagesReceived, BytesReceived: n.BytesReceived,
		Controls: n.Controls, CreditUpdates: n.CreditUpdates, Coalesced: c.counts.coalesced, Stalls: c.counts.stalls,
		SendUsed: l.Send, Held: l.Held, ReceiveUsed: l.Receive, BufferSize: l.Size,
		Credits: l.Credits, Receives: l.Receives,
		ZeroCopySent: n.ZeroCopySent, ZeroCopyReceived: n.ZeroCopyReceived,
		Offers: n.Offers, OffersRefused: n.OffersRefused, Sinks: n.Sinks, SinksCrossed: n.SinksCrossed,
	}
	for _, mr := range c.regions {
		s.Registered += len(mr.Bytes())
	}
	return s
}

// hwCounter is a queue pair whose adapter tells what it has counted.
type hwCounter interface {
	HWCounter(name string) (uint64, bool)
}
