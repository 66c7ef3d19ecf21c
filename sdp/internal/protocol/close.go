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
	c.drain.live = false // DisConn ends it
	c.say(control{id: bsdh.MIDDisConn})
	c.pump()
}

// Abort queues a word to the peer that the rest will not come. It reports
// whether there was a way to say so; if not, ending the connection does.
func (c *Core) Abort() bool {
	if c.err != nil || !c.finished || c.there {
		return false // the standard has it only after a DisConn, and instead of ours
	}
	c.say(control{id: bsdh.MIDAbortConn})
	c.pump()
	return true
}

// Aborting reports whether the word of Abort is on its way to the peer's adapter.
func (c *Core) Aborting() bool { return c.aborting > 0 }

// Closing reports whether CloseWrite was called.
func (c *Core) Closing() bool { return c.closing }

// Leave is instead of CloseWrite when the peer is not to have an end in order, because
// something of it is unread: what was written is still sent, and [Core.Delivered] tells
// when the connection may go. After CloseWrite it is too late for that.
func (c *Core) Leave() {
	c.leaving = !c.closing
	c.pump()
}

// pumpLast asks, behind the last byte before a Leave, for an acknowledgement of all.
func (c *Core) pumpLast() {
	if c.leaving && !c.asking && !c.left && c.sender.Unposted() == 0 && !c.offer.live && !c.drain.writing {
		c.ask(last)
	}
}

// Delivered reports whether everything that we wrote is with the peer's adapter, and
// our DisConn after CloseWrite. Nothing tells before CloseWrite or Leave.
func (c *Core) Delivered() bool { return c.there || c.left }

// Over reports whether both halves have ended: the connection may go.
func (c *Core) Over() bool { return c.there && c.finished }

// ended takes the peer's DisConn.
func (c *Core) ended() {
	switch {
	case c.finished:
		c.violation("DisConn twice")
	case c.avail.live:
		c.violation("DisConn while a SrcAvail is open")
	default:
		c.finished = true
		c.crossed() // nobody will write to it
	}
}
