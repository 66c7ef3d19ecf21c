package cm

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// A Conn is an RDMA-CM connection. Its queue pair is in StateRTS until the connection ends and in
// StateErr afterwards, except that of an ExternalQP, which the caller modifies. A nil or zero Conn
// behaves as an ended connection: Disconnect returns ErrClosed.
type Conn struct {
	m             *Manager
	id            uint32
	qp            verbs.QP
	kernel        adapter.ConnectorConn // the kernel's part, or nil
	local, remote netip.AddrPort
	adapter       netip.AddrPort
	params        Params
	private       []byte

	established    chan struct{} // closed when the handshake is complete; nil if it was from the start
	done           chan struct{} // closed when the connection has ended
	released       chan struct{} // closed when the peer has confirmed the end, or cannot be reached
	endOnce        sync.Once
	releaseOnce    sync.Once
	err            atomic.Pointer[Error] // cause of the end; set before the queue pair enters StateErr
	endPrivateData []byte                // private data of the peer's DREQ or DREP
	timedOut       bool                  // the DREQ was not answered; set before released is closed

	afterDoneMu sync.Mutex
	afterDone   func() // the callback of AfterDone
}

// QP returns the local queue pair, or nil for an ExternalQP.
func (c *Conn) QP() verbs.QP { return c.orEnded().qp }

// PrivateData returns the private data of the peer's REQ or REP, including trailing zeros of the
// field.
func (c *Conn) PrivateData() []byte { return c.orEnded().private }

// Params returns the parameters that the peer sent for its side.
func (c *Conn) Params() Params { return c.orEnded().params }

// LocalAddr returns the local address and port.
func (c *Conn) LocalAddr() netip.AddrPort { return c.orEnded().local }

// RemoteAddr returns the peer's address and port.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.orEnded().remote }

// RemoteAdapter returns the address and UDP port of the peer's adapter.
func (c *Conn) RemoteAdapter() netip.AddrPort { return c.orEnded().adapter }

// Done returns a channel that is closed when the connection has ended; Err then returns the
// cause.
func (c *Conn) Done() <-chan struct{} { return c.orEnded().done }

// Err returns the cause of the connection's end, or nil while it is established: ErrDisconnected
// if the peer disconnected, a *RejectError if the peer has lost its state, ErrClosed if the local
// side disconnected. Err is set before the queue pair enters StateErr, so a consumer that polls a
// flushed completion can call Err.
func (c *Conn) Err() error {
	if err := c.orEnded().err.Load(); err != nil {
		return err
	}
	return nil
}

// AfterDone calls f in its own goroutine when the connection has ended, like context.AfterFunc.
// It saves one goroutine per connection. A later call replaces f; nil removes it.
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
		vtime.Go(f)
	}
}

// DisconnectPrivateData returns the private data of the message that ended the connection, or nil
// while it is established.
func (c *Conn) DisconnectPrivateData() []byte {
	c = c.orEnded()
	select {
	case <-c.done:
		return c.endPrivateData
	default:
		return nil
	}
}

// closeTimeout bounds the wait of Conn.Close: eight times the default response timeout.
const closeTimeout = 5 * time.Second

// Close disconnects and blocks until the peer confirms, for at most 5 s. It is Disconnect without
// private data; use Disconnect to choose the timeout. The connection has ended even if Close
// returns an error. Closing an ended connection returns nil.
func (c *Conn) Close() error {
	ctx, cancel := vtime.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return c.Disconnect(ctx, nil)
}

// Disconnect moves the queue pair to StateErr, sends a DREQ with up to 220 bytes of private data
// and blocks until the peer confirms with a DREP. If the peer does not reply, Disconnect returns
// ErrUnreachable, and the connection has ended all the same. If ctx is done first, retransmission
// of the DREQ continues in the background. Disconnecting an ended connection returns nil. A nil
// ctx is never done.
func (c *Conn) Disconnect(ctx context.Context, private []byte) error {
	c, ctx = c.orEnded(), orBackground(ctx)
	if c.m == closedManager {
		return nil
	}
	if err := checkPrivateData(private, mad.DREQPrivateLen); err != nil {
		return wrapError("disconnect", c.remote, err, "")
	}
	if c.m.streams != nil {
		return c.disconnectStream(private)
	}
	if c.kernel != nil {
		return c.disconnectKernel(ctx, private)
	}
	c.terminate(ErrClosed, nil)
	c.m.mu.Lock()
	if c.m.machine.Disconnect(c.m.now(), c.id, private) {
		c.m.dispatchAndFlush()
	} else if c.rejectHandshake(private) {
		c.markReleased(false)
	} else if c.m.machine.State(c.id) != protocol.StateDREQSent {
		c.markReleased(false)
	}
	c.m.mu.Unlock()
	return c.awaitRelease(ctx)
}

// awaitRelease waits until the peer has confirmed the end, or cannot be reached.
func (c *Conn) awaitRelease(ctx context.Context) error {
	vtime.WaitUntil(func() bool { return vtime.IsClosed(c.released) || ctx.Err() != nil })
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

// terminate ends the connection locally: it records the cause, moves the queue pair to StateErr
// and closes done. Only the first call has an effect.
func (c *Conn) terminate(cause error, bye []byte) {
	c.endOnce.Do(func() {
		c.err.Store(&Error{Op: "connection", Peer: c.remote, Err: cause})
		if c.qp != nil {
			modifyToErr(c.qp)
		}
		c.endPrivateData = bye
		close(c.done)
		c.runAfterDone()
	})
}

// markReleased records that the peer has confirmed the end, or cannot be reached, and closes
// released.
func (c *Conn) markReleased(timedOut bool) {
	c.releaseOnce.Do(func() {
		c.timedOut = timedOut
		close(c.released)
	})
}

// handleEvent implements eventHandler.
func (c *Conn) handleEvent(e *protocol.Event) {
	switch e.Kind {
	case protocol.EventEstablished:
		c.markEstablished()
	case protocol.EventDisconnected:
		var cause error = ErrDisconnected
		if e.Reason != 0 {
			cause = &RejectError{Reason: e.Reason}
		}
		c.terminate(cause, append([]byte(nil), e.Private...))
		c.markReleased(false)
	case protocol.EventRejected:
		private := append([]byte(nil), e.Private...)
		c.terminate(&RejectError{Reason: e.Reason, Info: append([]byte(nil), e.Info...), PrivateData: private}, private)
		c.markReleased(false)
	case protocol.EventReleased, protocol.EventUnreachable, protocol.EventWithdrawn:
		c.terminate(newUnreachable(e.Err), nil)
		c.markReleased(e.TimedOut)
	}
}

// handleClose implements eventHandler.
func (c *Conn) handleClose() {
	c.terminate(ErrClosed, nil)
	c.markReleased(false)
}
