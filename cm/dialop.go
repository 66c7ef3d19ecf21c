package cm

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// A dialOp is an outstanding REQ or SIDR_REQ.
type dialOp struct {
	id     uint32
	conn   *Conn           // of DialExternal: handles the events after the REP; else nil
	result chan dialResult // buffered, capacity 1
}

// A dialResult is the outcome of a dialOp.
type dialResult struct {
	id      uint32      // of the connection
	rep     mad.REP     // without private data; the same holds for sidr
	sidr    mad.SIDRRep // for DialUD
	private []byte
	err     error
}

// handleEvent implements eventHandler. Only the first event counts.
func (d *dialOp) handleEvent(e *protocol.Event) {
	a := dialResult{id: e.ID, private: append([]byte(nil), e.Private...)}
	switch e.Kind {
	case protocol.EventReply:
		a.rep = e.REP
		a.rep.PrivateData = nil
		if d.conn != nil {
			d.conn.id = e.ID
			d.conn.m.handlers[e.ID] = d.conn
		}
	case protocol.EventSIDRReply:
		a.sidr = e.SIDRRep
		a.sidr.PrivateData, a.sidr.Info = nil, nil
	case protocol.EventRejected:
		a.err = &RejectError{Reason: e.Reason, Info: append([]byte(nil), e.Info...), PrivateData: a.private}
	case protocol.EventDisconnected, protocol.EventWithdrawn:
		a.err = ErrDisconnected
	case protocol.EventUnreachable:
		a.err = newUnreachable(e.Err)
	}
	select {
	case d.result <- a:
	default:
	}
}

// handleClose implements eventHandler.
func (d *dialOp) handleClose() {
	select {
	case d.result <- dialResult{err: ErrClosed}:
	default:
	}
}

// startDial sends a request by calling send, with m.mu held, and registers d for its reply. It
// returns ErrTooMany if the connection table is full.
func (m *Manager) startDial(d *dialOp, send func(now protocol.Time) (uint32, bool)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	id, ok := send(m.now())
	if !ok {
		return ErrTooMany
	}
	d.id = id
	m.handlers[id] = d
	m.dispatchAndFlush()
	return nil
}

// awaitReply waits for the reply to d. If ctx is done first, it abandons the request.
func (m *Manager) awaitReply(ctx context.Context, d *dialOp) (dialResult, error) {
	vtime.WaitUntil(func() bool { return len(d.result) > 0 || ctx.Err() != nil })
	select {
	case a := <-d.result:
		return a, a.err
	case <-ctx.Done():
		if m.abandon(d.id) == protocol.StateMRAREQRcvd {
			return dialResult{}, fmt.Errorf("%w: %w", ErrPending, ctx.Err())
		}
		return dialResult{}, ctx.Err()
	}
}

// abandon ends a connection or a request and notifies the peer once. It returns the state before.
func (m *Manager) abandon(id uint32) (before protocol.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.handlers, id)
	before = m.machine.State(id)
	m.machine.Abandon(m.now(), id)
	m.dispatchAndFlush()
	return before
}

// checkReachable returns an error if no datagram can be sent to peer.
func (m *Manager) checkReachable(peer netip.AddrPort) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	if m.streams != nil {
		return errNoStream
	}
	if m.kernel != nil {
		return errNoKernel
	}
	if !peer.Addr().IsValid() {
		return fmt.Errorf("%w: no address", verbs.ErrInvalid)
	}
	_, err := m.gsi.addressHandle(peer)
	return err
}

// localAddr returns the local address with the given port, or with an ephemeral port if port is
// 0.
func (m *Manager) localAddr(port uint16) netip.AddrPort {
	if port == 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		port = m.nextEphemeralPort()
	}
	return netip.AddrPortFrom(m.addr.Addr(), port)
}

// requestPrivateData returns the source address of a connection request and the private data that
// carries it to the peer: RDMA-CM's header, or for SDP the caller's Hello.
func (m *Manager) requestPrivateData(dst netip.Addr, o *DialOptions) (local netip.AddrPort, private []byte, err error) {
	if o.PortSpace != SDP {
		local = m.localAddr(o.LocalPort)
		return local, prependCMAHeader(o.PortSpace, mad.CMAHeader{Src: local, Dst: dst}, o.PrivateData), nil
	}
	h, err := bsdh.ParseHello(o.PrivateData)
	switch {
	case err != nil:
		return local, nil, fmt.Errorf("%w: DialOptions.PrivateData: invalid SDP Hello: %w", verbs.ErrInvalid, err)
	case h.Src != m.addr.Addr() || h.Dst != dst:
		return local, nil, fmt.Errorf("%w: DialOptions.PrivateData: Hello from %v to %v, request from %v to %v",
			verbs.ErrInvalid, h.Src, h.Dst, m.addr.Addr(), dst)
	case o.LocalPort != 0 && o.LocalPort != h.LocalPort:
		return local, nil, fmt.Errorf("%w: DialOptions.LocalPort %d, Hello in DialOptions.PrivateData has %d",
			verbs.ErrInvalid, o.LocalPort, h.LocalPort)
	}
	return netip.AddrPortFrom(m.addr.Addr(), h.LocalPort), o.PrivateData, nil
}

// randomPSN returns a random starting PSN.
func (m *Manager) randomPSN() uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.options.Rand() & 0xffffff
}

// maxPrivateData returns the number of bytes of a private data field that are available to the
// caller.
func maxPrivateData(s PortSpace, field int) int {
	if s.HasHeader() {
		return field - mad.CMAHeaderLen
	}
	return field
}

// checkPrivateData returns an error if b is longer than limit.
func checkPrivateData(b []byte, limit int) error {
	if len(b) > limit {
		return fmt.Errorf("%w: private data of %d bytes, limit %d", verbs.ErrInvalid, len(b), limit)
	}
	return nil
}

// prependCMAHeader prepends RDMA-CM's header to private if the port space has one.
func prependCMAHeader(s PortSpace, h mad.CMAHeader, private []byte) []byte {
	if !s.HasHeader() {
		return private
	}
	b := make([]byte, mad.CMAHeaderLen, mad.CMAHeaderLen+len(private))
	h.Put(b)
	return append(b, private...)
}
