package flow

// Credits are the messages that a peer has receives for: a connection has one
// count of them, for data and for what else SDP sends.
type Credits struct {
	bufs uint16 // posted, by the peer's last word
	ack  uint32 // the last of ours that the peer had received by then
	seq  uint32 // the last that we sent
}

// Start begins with what the peer's Hello promises.
func (c *Credits) Start(bufs uint16) { *c = Credits{bufs: bufs} }

// NextSeq takes the next sequence number.
func (c *Credits) NextSeq() uint32 {
	c.seq++
	return c.seq
}

// LastSeq is the number of the last message.
func (c *Credits) LastSeq() uint32 { return c.seq }

// Update takes a word of the peer, and reports whether it is one that may be
// said: a peer cannot have received what was not sent.
func (c *Credits) Update(bufs uint16, ack uint32) bool {
	if int32(c.seq-ack) < 0 {
		return false
	}
	if int32(ack-c.ack) >= 0 { // not older than what is known
		c.bufs, c.ack = bufs, ack
	}
	return true
}

// Available is how many messages may be sent.
func (c *Credits) Available() int { return int(c.bufs) - int(c.seq-c.ack) }

// ReservedCredits is how many credits data leaves for other messages.
const ReservedCredits = 2
