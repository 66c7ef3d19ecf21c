package protocol

// Stats are the counters of a connection.
type Stats struct {
	BytesWritten, BytesRead uint64 // by the application
	Messages, Controls      uint64 // sent, with and without data
	MessagesReceived        uint64 // received, with data
	BytesReceived           uint64
	CreditUpdates           uint64 // messages that advertised local receives
	ZeroCopySent            uint64 // bytes that the peer has read from, or the local side has written from, application memory
	ZeroCopyReceived        uint64
	Offers, OffersRefused   uint64 // SrcAvail sent; of these, refused or cancelled
	Sinks, SinksCrossed     uint64 // SinkAvail sent; of these, crossed with data
}

func (s *Stats) addWritten(n int)  { s.BytesWritten += uint64(n) }
func (s *Stats) addRead(n int)     { s.BytesRead += uint64(n) }
func (s *Stats) addReceived(n int) { s.MessagesReceived++; s.BytesReceived += uint64(n) }

// Stats returns a snapshot of the counters.
func (c *Core) Stats() Stats { return c.stats }
