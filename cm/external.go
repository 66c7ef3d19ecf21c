package cm

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// An ExternalQP describes a queue pair that the manager does not know and that the caller moves
// through its states itself, as programs with a queue pair outside of librdmacm do
// (rdma_conn_param.qp_num of rdma_connect(3)). The fields are sent as they are; zero is no default.
type ExternalQP struct {
	Num  uint32       // queue pair number, not 0
	Type verbs.QPType // RC or UC
	PSN  uint32       // starting PSN of the receive queue, 24 bits: the first that the peer sends

	ResponderResources uint8 // RDMA READs and atomics that the queue pair serves at a time
	InitiatorDepth     uint8 // RDMA READs and atomics that the queue pair issues at a time
	FlowControl        bool  // its acknowledgements carry end-to-end credits
	SRQ                bool  // it has a shared receive queue

	Retries    uint8 // retry count of both queue pairs, up to 7 (REQ only)
	RNRRetries uint8 // RNR retry count of the peer's queue pair, up to 7
	AckTimeout uint8 // local ACK timeout of both queue pairs, code of 5 bits (REQ only)

	selective bool // it can retransmit selectively; false for queue pairs outside of the manager
}

// validate returns an error for fields out of range.
func (q *ExternalQP) validate() error {
	for _, f := range []struct {
		name     string
		have     uint32
		min, max uint32
	}{
		{"Num", q.Num, 1, 1<<24 - 1}, {"PSN", q.PSN, 0, 1<<24 - 1}, {"Retries", uint32(q.Retries), 0, 7},
		{"RNRRetries", uint32(q.RNRRetries), 0, 7}, {"AckTimeout", uint32(q.AckTimeout), 0, 31},
	} {
		if f.have < f.min || f.have > f.max {
			return fmt.Errorf("%w: ExternalQP.%s: %#x out of range [%d, %#x]", verbs.ErrInvalid, f.name, f.have, f.min, f.max)
		}
	}
	if q.Type != verbs.RC && q.Type != verbs.UC {
		return fmt.Errorf("%w: ExternalQP.Type: %v, want RC or UC", verbs.ErrUnsupported, q.Type)
	}
	return nil
}

// DialExternal connects a queue pair of the caller to the listener at addr. It sends the REQ and
// blocks until the REP arrives. The caller then modifies the queue pair to StateRTS by the Params of
// the connection (Conn.QP returns nil) and calls Conn.Establish, or Conn.Disconnect to reject the
// REP, within 2 minutes. Errors are those of Dial. Of o, the fields of the path (MTU, SL,
// TrafficClass, HopLimit, FlowLabel), PrivateData, UDPPort, PortSpace and LocalPort apply.
func (m *Manager) DialExternal(ctx context.Context, addr netip.AddrPort, qp ExternalQP, o DialOptions) (*Conn, error) {
	m = m.orClosed()
	c, err := m.dialExternal(orBackground(ctx), addr, &qp, &o)
	if err != nil {
		return nil, wrapError("dial", addr, err, m.unreachableHint(err, o.UDPPort))
	}
	return c, nil
}

func (m *Manager) dialExternal(ctx context.Context, addr netip.AddrPort, qp *ExternalQP, o *DialOptions) (*Conn, error) {
	addr, peer, err := resolvePeer(addr, o)
	if err != nil {
		return nil, err
	}
	if err := m.checkExternalDial(peer, qp, o); err != nil {
		return nil, err
	}
	local, private, err := m.requestPrivateData(addr.Addr(), o)
	if err != nil {
		return nil, err
	}
	q := m.buildREQ(addr, qp, o)
	q.PrivateData = private
	c := newExternalConn(m, local, addr, peer)
	a, err := m.negotiateMTU(ctx, peer, q, o, func() *dialOp { return &dialOp{conn: c} })
	if err != nil {
		return nil, err
	}
	c.params, c.private = paramsFromREP(q, &a.rep), a.private
	return c, nil
}

// checkExternalDial validates the queue pair and the options of an external dial.
func (m *Manager) checkExternalDial(peer netip.AddrPort, qp *ExternalQP, o *DialOptions) error {
	if err := qp.validate(); err != nil {
		return err
	}
	if err := checkPrivateData(o.PrivateData, maxPrivateData(o.PortSpace, mad.REQPrivateLen)); err != nil {
		return err
	}
	if _, err := o.QPAttr(qp.Type); err != nil {
		return err
	}
	if o.MTU != 0 {
		if err := adapter.CheckPathMTU(m.dev, ahAttrTo(peer), o.MTU); err != nil {
			return err
		}
	}
	return m.checkReachable(peer)
}

func newExternalConn(m *Manager, local, remote, adapter netip.AddrPort) *Conn {
	return &Conn{
		m: m, local: local, remote: remote, adapter: adapter,
		established: make(chan struct{}), done: make(chan struct{}), released: make(chan struct{}),
	}
}

// AcceptExternal accepts the request for a queue pair of the caller, which has the Type that the
// peer requested and is in StateRTR or StateRTS. It sends the REP with up to 196 bytes of private
// data and returns without waiting for the peer's RTU: Conn.Established tells its arrival, and
// Conn.Done the failure. Of qp, Retries and AckTimeout have no effect.
func (r *Request) AcceptExternal(qp ExternalQP, private []byte) (*Conn, error) {
	c, err := r.acceptExternal(&qp, private)
	if err != nil {
		return nil, wrapError("accept", r.RemoteAddr(), err, "")
	}
	return c, nil
}

func (r *Request) acceptExternal(qp *ExternalQP, private []byte) (*Conn, error) {
	in := r.orClosed()
	if in == closedRequest {
		return nil, ErrClosed
	}
	if in.stream != nil {
		return nil, errNoStream
	}
	if in.kernel != nil {
		return nil, errNoKernel
	}
	if err := qp.validate(); err != nil {
		return nil, err
	}
	if qp.Type != r.Transport {
		return nil, fmt.Errorf("%w: transport %v requested, queue pair has %v", verbs.ErrInvalid, r.Transport, qp.Type)
	}
	if err := checkPrivateData(private, mad.REPPrivateLen); err != nil {
		return nil, err
	}
	m := in.l.m
	c := newExternalConn(m, r.LocalAddr(), r.RemoteAddr(), r.RemoteAdapter())
	c.id, c.params, c.private = in.id, r.Params, in.private
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := in.claim(); err != nil {
		return nil, err
	}
	if !m.machine.Accept(m.now(), c.id, r.buildREP(qp, private)) {
		return nil, ErrWithdrawn
	}
	m.handlers[c.id] = c
	m.dispatchAndFlush()
	return c, nil
}

// Establish completes the handshake of a connection of DialExternal: it sends the RTU with up to 224
// bytes of private data (rdma_establish). For a connection of AcceptExternal it reports that data
// has arrived, which implies the RTU (rdma_notify). An established connection remains unchanged.
// Establish returns the cause if the connection has ended.
func (c *Conn) Establish(private []byte) error {
	c = c.orEnded()
	if err := checkPrivateData(private, mad.RTUPrivateLen); err != nil {
		return wrapError("establish", c.remote, err, "")
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	switch c.m.machine.State(c.id) {
	case protocol.StateREPRcvd:
		c.m.machine.Ready(c.id, append([]byte(nil), private...))
		c.markEstablished()
	case protocol.StateREPSent, protocol.StateMRAREPRcvd:
		c.m.machine.Notify(c.id)
	}
	c.m.dispatchAndFlush()
	return c.Err()
}

// Established returns a channel that is closed when the handshake of the connection is complete.
// If the handshake fails, only Done is closed.
func (c *Conn) Established() <-chan struct{} {
	if c = c.orEnded(); c.established == nil {
		return closedChannel
	}
	return c.established
}

// markEstablished closes established. m.mu must be held.
func (c *Conn) markEstablished() {
	if c.established != nil && !c.isEstablished() {
		close(c.established)
	}
}

// isEstablished reports whether the handshake is complete.
func (c *Conn) isEstablished() bool {
	select {
	case <-c.Established():
		return true
	default:
		return false
	}
}

// rejectHandshake ends a connection whose handshake is not complete by a REJ, which has the private
// data if the local side dialed. It reports whether the connection was in such a state. m.mu must
// be held.
func (c *Conn) rejectHandshake(private []byte) bool {
	switch c.m.machine.State(c.id) {
	case protocol.StateREPRcvd:
		c.m.machine.Reject(c.m.now(), c.id, mad.REJ{Reason: ConsumerReject, PrivateData: private})
	case protocol.StateREPSent, protocol.StateMRAREPRcvd:
		c.m.machine.Abandon(c.m.now(), c.id)
	default:
		return false
	}
	delete(c.m.handlers, c.id)
	c.m.dispatchAndFlush()
	return true
}
