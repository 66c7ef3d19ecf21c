package protocol

// Stats counts what a connection does. Buffers are a moment's.
type Stats struct {
	BytesWritten, BytesRead uint64 // by the application
	Messages, Controls      uint64 // sent: with data, and without
	MessagesReceived        uint64 // with data
	BytesReceived           uint64
	CreditUpdates           uint64 // messages that told the peer about our receives
	ZeroCopySent            uint64 // bytes that the peer has read from or that we have written to user's memory
	ZeroCopyReceived        uint64
	Offers, OffersRefused   uint64 // SrcAvail sent; refused or cancelled
	Sinks, SinksCrossed     uint64 // SinkAvail sent; those that crossed with data
}

func (s *Stats) addWritten(n int)  { s.BytesWritten += uint64(n) }
func (s *Stats) addRead(n int)     { s.BytesRead += uint64(n) }
func (s *Stats) addReceived(n int) { s.MessagesReceived++; s.BytesReceived += uint64(n) }

// Stats returns the counts.
func (c *Core) Stats() Stats { return c.stats }
