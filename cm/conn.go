package cm

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// Conn is a connection. Its queue pair is in StateRTS until the connection
// ends, and then in StateErr. Nil and the zero value are connections that have
// ended, of which Disconnect returns ErrClosed.
type Conn struct {
	m             *Manager
	id            uint32
	qp            verbs.QP
	local, remote netip.AddrPort
	adapter       netip.AddrPort
	params        Params
	private       []byte

	done           chan struct{} // closed when the connection has ended
	released       chan struct{} // closed when the peer knows, or cannot be told
	endOnce        sync.Once
	releaseOnce    sync.Once
	err            atomic.Pointer[Error] // why it ended; set before the queue pair is in StateErr
	endPrivateData []byte                // private data of the peer's DREQ or DREP
	timedOut       bool                  // the peer did not confirm the end; set before released is closed

	afterDoneMu sync.Mutex
	afterDone   func() // of AfterDone
}

// QP is the queue pair at this end.
func (c *Conn) QP() verbs.QP { return c.orEnded().qp }

// PrivateData is what the peer sent with its REQ or REP, with the trailing
// zeros of the field.
func (c *Conn) PrivateData() []byte { return c.orEnded().private }

// Params is what the peer said about its end.
func (c *Conn) Params() Params { return c.orEnded().params }

// LocalAddr is our address and port.
func (c *Conn) LocalAddr() netip.AddrPort { return c.orEnded().local }

// RemoteAddr is the peer's address and port.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.orEnded().remote }

// RemoteAdapter is the address and UDP port of the peer's adapter.
func (c *Conn) RemoteAdapter() netip.AddrPort { return c.orEnded().adapter }

// Done is closed when the connection has ended; Err says why.
func (c *Conn) Done() <-chan struct{} { return c.orEnded().done }

// Err is why the connection ended, nil before it has: ErrDisconnected if the
// peer ended it, a *RejectError if the peer has forgotten it, ErrClosed if we
// did. It is known before the queue pair goes to StateErr, so who polls a
// completion that was flushed for that can ask why.
func (c *Conn) Err() error {
	if err := c.orEnded().err.Load(); err != nil {
		return err
	}
	return nil
}

// AfterDone calls f in a goroutine of its own when the connection has ended,
// like context.AfterFunc, so that who has many connections needs no goroutine
// for each. There is one f a connection: nil takes it back.
func (c *Conn) AfterDone(f func()) {
	c = c.orEnded()
	c.afterDoneMu.Lock()
	c.afterDone = f
	c.afterDoneMu.Unlock()
	select {
	case <-c.done:
		c.runAfterDone()
	default:
	}
}

func (c *Conn) runAfterDone() {
	c.afterDoneMu.Lock()
	f := c.afterDone
	c.afterDone = nil
	c.afterDoneMu.Unlock()
	if f != nil {
		go f()
	}
}

// DisconnectPrivateData is what the peer sent with the message that ended the
// connection, nil before that.
func (c *Conn) DisconnectPrivateData() []byte {
	c = c.orEnded()
	select {
	case <-c.done:
		return c.endPrivateData
	default:
		return nil
	}
}

// Disconnect takes the queue pair to StateErr, tells the peer, and waits until
// the peer has confirmed. It returns ErrUnreachable if the peer does not; the
// connection is over all the same. If ctx ends first the peer is still told.
// Disconnecting what has ended returns nil. A ctx that is nil never ends.
func (c *Conn) Disconnect(ctx context.Context) error { return c.DisconnectWith(ctx, nil) }

// DisconnectWith is Disconnect with up to 220 bytes of private data.
func (c *Conn) DisconnectWith(ctx context.Context, private []byte) error {
	c, ctx = c.orEnded(), orBackground(ctx)
	if c.m == closedManager {
		return &Error{Op: "disconnect", Err: ErrClosed}
	}
	if err := checkPrivateData(private, mad.DREQPrivateLen); err != nil {
		return wrapError("disconnect", c.remote, err, "")
	}
	c.terminate(ErrClosed, nil)
	c.m.mu.Lock()
	if c.m.machine.Disconnect(c.m.now(), c.id, private) {
		c.m.dispatchAndFlush()
	} else if c.m.machine.State(c.id) != protocol.StateDREQSent {
		c.markReleased(false)
	}
	c.m.mu.Unlock()
	select {
	case <-c.released:
		if c.timedOut {
			return &Error{Op: "disconnect", Peer: c.remote, Err: ErrUnreachable}
		}
		return nil
	case <-ctx.Done():
		return &Error{Op: "disconnect", Peer: c.remote, Err: ctx.Err()}
	}
}

// terminate ends the connection at this end.
func (c *Conn) terminate(why error, bye []byte) {
	c.endOnce.Do(func() {
		c.err.Store(&Error{Op: "connection", Peer: c.remote, Err: why})
		modifyToErr(c.qp)
		c.endPrivateData = bye
		close(c.done)
		c.runAfterDone()
	})
}

// markReleased notes that the peer knows of the end, or cannot be told.
func (c *Conn) markReleased(timedOut bool) {
	c.releaseOnce.Do(func() {
		c.timedOut = timedOut
		close(c.released)
	})
}

// handleEvent implements party.
func (c *Conn) handleEvent(e *protocol.Event) {
	switch e.Kind {
	case protocol.EventDisconnected:
		var why error = ErrDisconnected
		if e.Reason != 0 {
			why = &RejectError{Reason: e.Reason}
		}
		c.terminate(why, append([]byte(nil), e.Private...))
		c.markReleased(false)
	case protocol.EventReleased, protocol.EventUnreachable, protocol.EventRejected:
		c.terminate(newUnreachable(e.Err), nil)
		c.markReleased(e.TimedOut)
	}
}

// handleClose implements party.
func (c *Conn) handleClose() {
	c.terminate(ErrClosed, nil)
	c.markReleased(false)
}
