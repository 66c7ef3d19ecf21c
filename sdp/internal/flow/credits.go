package flow

// Credits count the messages for which the peer has receives posted. A connection has one count
// for data and control messages.
type Credits struct {
	bufs uint16 // receives posted, as last advertised by the peer
	ack  uint32 // last message that the peer had received at that time
	seq  uint32 // last message sent
}

// Start sets the initial number of receives, from the peer's Hello.
func (c *Credits) Start(bufs uint16) { *c = Credits{bufs: bufs} }

// NextSeq allocates the next sequence number, which uses a credit.
func (c *Credits) NextSeq() uint32 {
	c.seq++
	return c.seq
}

// LastSeq returns the sequence number of the last message.
func (c *Credits) LastSeq() uint32 { return c.seq }

// Update applies an advertisement from the peer: bufs receives after message ack. It returns
// false if ack acknowledges a message that was not sent. It ignores advertisements older than the
// last one.
func (c *Credits) Update(bufs uint16, ack uint32) bool {
	if int32(c.seq-ack) < 0 {
		return false
	}
	if int32(ack-c.ack) >= 0 { // not older than the last advertisement
		c.bufs, c.ack = bufs, ack
	}
	return true
}

// Available returns the number of messages that may be sent.
func (c *Credits) Available() int { return int(c.bufs) - int(c.seq-c.ack) }

// ReservedCredits is the number of credits that data leaves for control messages.
const ReservedCredits = 2
