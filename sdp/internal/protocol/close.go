package protocol

import "github.com/softrnic/softrnic/internal/bsdh"

// CloseWrite closes the local half of the stream: DisConn follows the last written byte. The
// caller must cancel an outstanding offer.
func (c *Core) CloseWrite() {
	if c.closing || c.err != nil {
		return
	}
	c.closing = true
	c.peerSink.live = false // DisConn voids it
	c.queueControl(control{id: bsdh.MIDDisConn})
	c.buildRequests()
}

// Abort queues an AbortConn, which tells the peer that the stream is incomplete. It returns false
// if the protocol does not allow the message now; then the caller ends the connection.
func (c *Core) Abort() bool {
	if c.err != nil || !c.peerClosed || c.disConnDelivered {
		return false // the standard allows it only after the peer's DisConn and instead of the local one
	}
	c.queueControl(control{id: bsdh.MIDAbortConn})
	c.buildRequests()
	return true
}

// Aborting reports whether the AbortConn is in flight.
func (c *Core) Aborting() bool { return c.abortSeq > 0 }

// Closing reports whether CloseWrite was called.
func (c *Core) Closing() bool { return c.closing }

// CloseWithoutDisConn replaces CloseWrite when data of the peer is unread, so that the peer does
// not see an orderly end: written data is still sent, and [Core.Delivered] reports its
// acknowledgement. It has no effect after CloseWrite.
func (c *Core) CloseWithoutDisConn() {
	c.closingWithoutDisConn = !c.closing
	c.buildRequests()
}

// Delivered reports whether the peer's adapter has acknowledged all data, and the DisConn after
// CloseWrite. It is false before CloseWrite or CloseWithoutDisConn.
func (c *Core) Delivered() bool { return c.disConnDelivered || c.flushed }

// handleDisConn handles the peer's DisConn.
func (c *Core) handleDisConn() {
	switch {
	case c.peerClosed:
		c.violation("second DisConn")
	case c.peerSource.live:
		c.violation("DisConn while a SrcAvail is outstanding")
	default:
		c.peerClosed = true
		c.endCrossedSink() // the peer will not write to it
	}
}
