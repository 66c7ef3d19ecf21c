package reliability

import "github.com/softrnic/softrnic/wire"

// A Credits tracks end-to-end flow control of a requester. One credit is one
// posted receive of the peer. Messages are numbered by SSN (send sequence
// number) from 1. A message that consumes a receive may start up to one past
// the LSN (limit sequence number): the message past the limit probes the peer
// for new credits. (IBTA volume 1, section 9.7.7.2.)
type Credits struct {
	ssn        uint32 // SSN of the last message started, 24 bits
	lsn        uint32 // limit sequence number, 24 bits
	granted    uint32 // credits of the last update that moved the limit
	unlimited  bool
	advertised bool // the peer has advertised a number of credits
}

// Reset starts a connection. If unlimited is set, credits are ignored.
func (c *Credits) Reset(unlimited bool) { *c = Credits{unlimited: unlimited} }

// Allows reports whether the next message may start. consumes reports whether
// the message consumes a receive of the peer.
func (c *Credits) Allows(consumes bool) bool {
	if c.unlimited || !consumes {
		return true
	}
	return serialDiff24(c.ssn+1, c.lsn+1) <= 0
}

// PeerAdvertises reports whether the peer advertises a number of receives. Such
// a peer also sends a credit update when a receive becomes available.
func (c *Credits) PeerAdvertises() bool { return c.advertised && !c.unlimited }

// BelowWatermark reports whether the remaining credits are at most a quarter of
// the last grant, or two. The requester then requests an acknowledgement, so
// that new credits arrive before it stalls. A watermark of one half costs more
// acknowledgements: a peer with eight receives would send one for every fourth
// message.
func (c *Credits) BelowWatermark() bool {
	return !c.unlimited && serialDiff24(c.lsn, c.ssn) <= max(2, int32(c.granted/4))
}

// StartMessage numbers the next message. A message without a receive moves the
// limit, because it advances the peer's MSN without using a credit.
func (c *Credits) StartMessage(consumes bool) {
	c.ssn = (c.ssn + 1) & 0xffffff
	if !consumes {
		c.lsn = (c.lsn + 1) & 0xffffff
	}
}

// Update applies the credit code and MSN of an acknowledgement and reports
// whether the limit moved. Code 31 disables flow control for the rest of the
// connection.
func (c *Credits) Update(code uint8, msn uint32) bool {
	if c.unlimited {
		return false
	}
	n, unlimited := wire.Credits(code)
	if unlimited {
		c.unlimited = true
		return true
	}
	c.advertised = true
	limit := (msn + uint32(n)) & 0xffffff
	if serialDiff24(limit, c.lsn) <= 0 {
		return false
	}
	c.lsn, c.granted = limit, uint32(n)
	return true
}

// serialDiff24 returns a-b in 24-bit serial number arithmetic.
func serialDiff24(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }
