package cm

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// UDQKey is RDMA-CM's Q_Key for datagrams (RDMA_UDP_QKEY), used unless the applications agree on
// another.
const UDQKey = mad.UDPQKey

// A UDListener accepts SIDR requests, which resolve a port to a UD queue pair. A nil or zero
// UDListener is closed.
type UDListener struct{ l *listener }

// ListenUD listens for SIDR requests on port. Port 0 selects a free one. It ignores NoRC and
// NoUC.
func (m *Manager) ListenUD(port uint16, o ListenOptions) (*UDListener, error) {
	m = m.orClosed()
	if err := o.validate(UDP); err != nil {
		return nil, m.listenError(port, err)
	}
	l, err := m.listen(o.PortSpace, port, protocol.ServiceOptions{Backlog: o.Backlog})
	if err != nil {
		return nil, err
	}
	return &UDListener{l}, nil
}

// Accept blocks until a request arrives, which the caller must accept or reject. It returns
// ErrClosed after the listener or the manager is closed. A nil ctx is never done.
func (l *UDListener) Accept(ctx context.Context) (*UDRequest, error) {
	in, err := l.orClosed().accept(ctx)
	if err != nil {
		return nil, err
	}
	return &UDRequest{in}, nil
}

// Addr returns the listener's address and port.
func (l *UDListener) Addr() netip.AddrPort { return l.orClosed().addr }

// Close closes the listener and rejects requests that Accept has not returned. Close is
// idempotent.
func (l *UDListener) Close() error { return l.orClosed().close() }

// A UDRequest is a peer's SIDR_REQ. It must be accepted or rejected exactly once.
type UDRequest struct{ in *incomingRequest }

// PrivateData returns the private data of the SIDR_REQ, including trailing zeros of the field.
func (r *UDRequest) PrivateData() []byte { return r.orClosed().private }

// RemoteAddr returns the peer's address and port.
func (r *UDRequest) RemoteAddr() netip.AddrPort { return r.orClosed().remoteAddr() }

// LocalAddr returns the local address and port that the peer dialed.
func (r *UDRequest) LocalAddr() netip.AddrPort { return r.orClosed().l.addr }

// RemoteAH returns the address vector of the peer. The peer's queue pair number comes with its
// first datagram (verbs.WC.SrcQPN).
func (r *UDRequest) RemoteAH() verbs.AHAttr { return ahAttrTo(r.orClosed().peer) }

func ahAttrTo(peer netip.AddrPort) verbs.AHAttr {
	return verbs.AHAttr{DGID: verbs.GIDFromAddr(peer.Addr()), UDPPort: peer.Port(), PortNum: 1}
}

// UDAcceptOptions configure the reply to a SIDR_REQ. QP or QPN is required.
type UDAcceptOptions struct {
	UDQueuePair
	PrivateData []byte // up to 136 bytes
}

// A UDQueuePair is a queue pair for datagrams.
type UDQueuePair struct {
	// QP has type UD. In StateReset or StateInit it is moved to StateRTS with QKey; in another
	// state it is unchanged.
	QP   verbs.QP
	QKey uint32 // default UDQKey

	// QPN is the number of a queue pair that the caller activates itself, for UDRequest.Accept if
	// QP is nil.
	QPN uint32

	// Receives are posted before the queue pair leaves StateInit. Each needs 40 bytes for the
	// GRH.
	Receives []verbs.RecvWR

	// Prepare is called after Receives are posted and before the queue pair leaves StateInit.
	Prepare func(verbs.QP) error
}

// activateQP moves the queue pair to StateRTS if necessary and returns its Q_Key.
func (u *UDQueuePair) activateQP(m *Manager) (qkey uint32, err error) {
	if m.isClosed() {
		return 0, ErrClosed
	}
	if u.QP == nil {
		return 0, fmt.Errorf("%w: UDQueuePair.QP is nil", verbs.ErrInvalid)
	}
	if t := u.QP.Type(); t != verbs.UD {
		return 0, fmt.Errorf("%w: queue pair type %v, want UD", verbs.ErrUnsupported, t)
	}
	if s := u.QP.State(); s != verbs.StateReset && s != verbs.StateInit {
		attr, _ := u.QP.Query()
		return attr.QKey, nil
	}
	setDefault(&u.QKey, UDQKey)
	if u.QP.State() == verbs.StateReset {
		err := u.QP.Modify(verbs.QPAttr{State: verbs.StateInit, PortNum: 1, QKey: u.QKey},
			verbs.AttrState|verbs.AttrPKeyIndex|verbs.AttrPort|verbs.AttrQKey)
		if err != nil {
			return 0, err
		}
	}
	if err := prepareQP(u.QP, u.Receives, u.Prepare); err != nil {
		return 0, err
	}
	return u.QKey, verbs.ActivateUD(u.QP, u.QKey, m.randomPSN())
}

// Accept sends a SIDR_REP with the number of o.QP, or o.QPN, and the Q_Key.
func (r *UDRequest) Accept(o UDAcceptOptions) error {
	rep := mad.SIDRRep{QPN: o.QPN, QKey: o.QKey, PrivateData: o.PrivateData}
	setDefault(&rep.QKey, UDQKey)
	var err error
	if o.QP != nil || o.QPN == 0 {
		if rep.QKey, err = o.activateQP(r.orClosed().l.m); err == nil {
			rep.QPN = o.QP.Num()
		}
	}
	if err == nil {
		err = r.sendReply(rep)
	}
	if err != nil {
		return wrapError("accept datagrams", r.RemoteAddr(), err, "")
	}
	return nil
}

// Reject sends a SIDR_REP with the status and up to 136 bytes of private data. Status 0 means
// UDReject.
func (r *UDRequest) Reject(status UDStatus, private []byte) error {
	setDefault(&status, UDReject)
	if err := r.sendReply(mad.SIDRRep{Status: status, PrivateData: private}); err != nil {
		return wrapError("reject datagrams", r.RemoteAddr(), err, "")
	}
	return nil
}

func (r *UDRequest) sendReply(rep mad.SIDRRep) error {
	if err := checkPrivateData(rep.PrivateData, mad.SIDRRepPrivateLen); err != nil {
		return err
	}
	in := r.orClosed()
	m := in.l.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := in.claim(); err != nil {
		return err
	}
	m.machine.ReplySIDR(in.id, rep)
	m.dispatchAndFlush()
	return nil
}

// UDDialOptions configure a SIDR_REQ. The zero value resolves the queue pair that serves a port.
type UDDialOptions struct {
	UDQueuePair           // optional; without QP the manager changes no queue pair
	PrivateData []byte    // up to 180 bytes; 216 in a port space without RDMA-CM's header
	UDPPort     uint16    // of the peer's adapter; default 4791
	PortSpace   PortSpace // default UDP
	LocalPort   uint16    // source port in the request; default an ephemeral one
}

// A UDPeer is the destination of datagrams to a port.
type UDPeer struct {
	QPN, QKey             uint32       // verbs.SendWR.RemoteQPN and RemoteQKey
	AH                    verbs.AHAttr // for verbs.PD.CreateAH
	PrivateData           []byte       // of the SIDR_REP, including trailing zeros
	LocalAddr, RemoteAddr netip.AddrPort
}

// DialUD resolves addr to a UD queue pair (SIDR) and blocks until the reply arrives. It returns a
// *UDRejectError if the peer rejects the request, and ErrUnreachable or the context's error if
// the peer does not reply. A nil ctx is never done.
func (m *Manager) DialUD(ctx context.Context, addr netip.AddrPort, o UDDialOptions) (*UDPeer, error) {
	m = m.orClosed()
	p, err := m.dialUD(orBackground(ctx), addr, &o)
	if err != nil {
		return nil, wrapError("dial datagrams", addr, err, m.unreachableHint(err, o.UDPPort))
	}
	return p, nil
}

func (m *Manager) dialUD(ctx context.Context, addr netip.AddrPort, o *UDDialOptions) (*UDPeer, error) {
	setDefault(&o.UDPPort, rocePort)
	setDefault(&o.PortSpace, UDP)
	if err := checkPortSpace("UDDialOptions", o.PortSpace); err != nil {
		return nil, err
	}
	addr = hostaddr.CanonicalPort(addr)
	peer := netip.AddrPortFrom(addr.Addr(), o.UDPPort)
	if err := checkPrivateData(o.PrivateData, maxPrivateData(o.PortSpace, mad.SIDRReqPrivateLen)); err != nil {
		return nil, err
	}
	if err := m.checkReachable(peer); err != nil {
		return nil, err
	}
	if o.QP != nil {
		if _, err := o.activateQP(m); err != nil {
			return nil, err
		}
	}
	local := m.localAddr(o.LocalPort)
	q := mad.SIDRReq{
		PKey: 0xffff, ServiceID: mad.ServiceIDOf(o.PortSpace, addr.Port()),
		PrivateData: prependCMAHeader(o.PortSpace, mad.CMAHeader{Src: local, Dst: addr.Addr()}, o.PrivateData),
	}
	a, err := m.sendSIDRReqAndWait(ctx, peer, q)
	if err != nil {
		return nil, err
	}
	return &UDPeer{
		QPN: a.sidr.QPN, QKey: a.sidr.QKey, AH: ahAttrTo(peer), PrivateData: a.private, LocalAddr: local, RemoteAddr: addr,
	}, nil
}

// sendSIDRReqAndWait sends a SIDR_REQ and waits for the reply.
func (m *Manager) sendSIDRReqAndWait(ctx context.Context, peer netip.AddrPort, q mad.SIDRReq) (dialResult, error) {
	d := &dialOp{result: make(chan dialResult, 1)}
	err := m.startDial(d, func(now protocol.Time) (uint32, bool) {
		return m.machine.RequestSIDR(now, peer, q, timeoutCode(m.options.ResponseTimeout), uint8(m.options.Retries))
	})
	if err != nil {
		return dialResult{}, err
	}
	a, err := m.awaitReply(ctx, d)
	if err == nil && a.sidr.Status != mad.SIDRSuccess {
		err = &UDRejectError{Status: a.sidr.Status, PrivateData: a.private}
	}
	return a, err
}
