package reliability

import "github.com/softrnic/softrnic/wire"

// Credits is the requester's side of end-to-end flow control: one credit is
// one receive at the peer. Messages are numbered by SSN from 1; those that
// take a receive may start up to one beyond the limit sequence number, the
// one being the probe whose answer tells how things stand. (IBTA volume 1,
// section 9.7.7.2.)
type Credits struct {
	ssn        uint32 // of the last message started, 24 bits
	lsn        uint32 // limit sequence number, 24 bits
	granted    uint32 // by the last update that moved the limit
	unlimited  bool
	advertised bool // the peer has told a number
}

// Reset starts a connection; unlimited ignores credits altogether.
func (c *Credits) Reset(unlimited bool) { *c = Credits{unlimited: unlimited} }

// Allows reports whether the next message may start. consumes tells whether
// it takes a receive at the peer.
func (c *Credits) Allows(consumes bool) bool {
	if c.unlimited || !consumes {
		return true
	}
	return serialDiff24(c.ssn+1, c.lsn+1) <= 0
}

// PeerAdvertises reports whether the peer has told how many receives it has, and so tells when there
// is one again.
func (c *Credits) PeerAdvertises() bool { return c.advertised && !c.unlimited }

// BelowWatermark reports whether the next acknowledgement should come soon: a quarter is left of the
// credits granted last, or two. Who asks at half of them gets one for every fourth message
// from a peer with eight receives, and question and answer by message take 4 % longer.
func (c *Credits) BelowWatermark() bool {
	return !c.unlimited && serialDiff24(c.lsn, c.ssn) <= max(2, int32(c.granted/4))
}

// StartMessage numbers the next message. One that takes no receive moves the limit,
// because it will move the peer's MSN without using a credit.
func (c *Credits) StartMessage(consumes bool) {
	c.ssn = (c.ssn + 1) & 0xffffff
	if !consumes {
		c.lsn = (c.lsn + 1) & 0xffffff
	}
}

// Update takes the credit field of an acknowledgement and reports whether the
// limit moved. Code 31 ends the counting for the life of the connection.
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

func serialDiff24(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }
