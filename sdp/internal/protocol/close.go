package protocol

import (
	"errors"

	"github.com/softrnic/softrnic/wire/bsdh"
)

// How a connection ends before its time.
var (
	ErrReset   = errors.New("the connection was reset")
	ErrAborted = errors.New("the peer has aborted the connection")
)

// CloseWrite ends our half of the stream: DisConn follows the last byte. What
// the application has written before is still sent; an offer ends first, and is
// the caller's to cancel.
func (c *Core) CloseWrite() {
	if c.closing || c.err != nil {
		return
	}
	c.closing = true
	c.peerSink.live = false // DisConn ends it
	c.queueControl(control{id: bsdh.MIDDisConn})
	c.buildRequests()
}

// Abort queues a word to the peer that the rest will not come. It reports
// whether there was a way to say so; if not, ending the connection does.
func (c *Core) Abort() bool {
	if c.err != nil || !c.peerClosed || c.disConnDelivered {
		return false // the standard has it only after a DisConn, and instead of ours
	}
	c.queueControl(control{id: bsdh.MIDAbortConn})
	c.buildRequests()
	return true
}

// Aborting reports whether the word of Abort is on its way to the peer's adapter.
func (c *Core) Aborting() bool { return c.abortSeq > 0 }

// Closing reports whether CloseWrite was called.
func (c *Core) Closing() bool { return c.closing }

// CloseWithoutDisConn is instead of CloseWrite when the peer is not to have an end in order, because
// something of it is unread: what was written is still sent, and [Core.Delivered] tells
// when the connection may go. After CloseWrite it is too late for that.
func (c *Core) CloseWithoutDisConn() {
	c.closingWithoutDisConn = !c.closing
	c.buildRequests()
}

// requestFinalAck asks, behind the last byte before a Leave, for an acknowledgement of all.
func (c *Core) requestFinalAck() {
	if c.closingWithoutDisConn && !c.probing && !c.flushed && c.sender.Unposted() == 0 && !c.offer.live && !c.peerSink.writing {
		c.sendProbe(probeAfterLast)
	}
}

// Delivered reports whether everything that we wrote is with the peer's adapter, and
// our DisConn after CloseWrite. Nothing tells before CloseWrite or Leave.
func (c *Core) Delivered() bool { return c.disConnDelivered || c.flushed }

// BothClosed reports whether both halves have ended: the connection may go.
func (c *Core) BothClosed() bool { return c.disConnDelivered && c.peerClosed }

// handleDisConn takes the peer's DisConn.
func (c *Core) handleDisConn() {
	switch {
	case c.peerClosed:
		c.violation("DisConn twice")
	case c.peerSource.live:
		c.violation("DisConn while a SrcAvail is open")
	default:
		c.peerClosed = true
		c.endCrossedSink() // nobody will write to it
	}
}
