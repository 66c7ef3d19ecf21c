package rdm

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// Native RDMA: the adapters at both ends execute operations. The ends negotiate it
// with TOKEN messages, so it is not used with other adapters:
//
//	TOKEN, status 0, a: token  request; packets to the sender carry the token
//	TOKEN, status 1, a: token  reply; 0 declines
const tagToken = 'T'

// A nativeAdapter is the state of native RDMA at this end.
type nativeAdapter struct {
	qp            verbs.DatagramRDMA // nil if unsupported
	atomicResults verbs.MR           // original values of atomics, by slot of the operation

	wrs  [1]verbs.SendWR // reused
	sges [1]verbs.SGE
}

// A nativeState is the negotiated state of native RDMA with a peer.
type nativeState struct {
	ah    verbs.PeerAH
	state negotiation
}

type negotiation uint8

const (
	notNegotiated negotiation = iota
	negotiating
	declined
	agreed
)

// A route is the implementation of operations to a peer.
type route uint8

const (
	routeUnknown route = iota
	routeEmulated
	routeNative
)

// Native reports whether operations on the peer's memory are native. This is
// negotiated with the first operation.
func (p *Peer) Native() bool {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	return p.rdmaState != nil && p.rdmaState.native.state == agreed
}

// requestNative enables RDMA over UD in the attributes of the queue pair.
func (e *Endpoint) requestNative(a *verbs.QPInitAttr) {
	if !e.o.Emulate {
		a.MaxDatagramRDMA = e.o.Ops
	}
}

// initNative allocates the state of native RDMA if the adapter supports it.
func (e *Endpoint) initNative() (err error) {
	if e.native.qp, _ = e.port.QP.(verbs.DatagramRDMA); e.native.qp == nil || e.o.Emulate {
		e.native.qp = nil
		return nil
	}
	e.native.atomicResults, err = e.port.PD.RegMR(make([]byte, 8*e.o.Ops), verbs.AccessLocalWrite)
	return err
}

func (e *Endpoint) closeNative() error {
	if e.native.atomicResults == nil {
		return nil
	}
	return e.native.atomicResults.Close()
}

// routeTo returns the route to a peer and starts the negotiation if necessary.
func (e *Endpoint) routeTo(p *Peer) route {
	n := &p.rdmaState.native
	switch {
	case n.state == agreed:
		return routeNative
	case n.state == declined || e.native.qp == nil:
		return routeEmulated
	case n.state == notNegotiated:
		if e.ensureNativePeer(p) != nil {
			n.state = declined
			return routeEmulated
		}
		if e.sendOpMessage(p, &opMessage{tag: tagToken, a: uint64(n.ah.Token())}, nil, true) {
			n.state = negotiating
		}
	}
	return routeUnknown
}

// ensureNativePeer creates the adapter's handle of a peer if necessary.
func (e *Endpoint) ensureNativePeer(p *Peer) (err error) {
	n := &p.ensureRDMA().native
	if n.ah != nil {
		return nil
	}
	mtu := verbs.MTU256
	for mtu < verbs.MTU4096 && (mtu+1).Bytes() <= min(p.at.MTU, e.mtu) {
		mtu++
	}
	n.ah, err = e.native.qp.CreatePeer(verbs.PeerAttr{QPN: p.at.QPN, Access: p.access & verbs.AccessRemote, MTU: mtu, GiveUp: e.o.GiveUp,
		AH: verbs.AHAttr{DGID: verbs.GIDFromAddr(p.at.At.Addr()), UDPPort: p.at.At.Port()}})
	return err
}

// handleToken handles a TOKEN message.
func (e *Endpoint) handleToken(p *Peer, r *opMessage) {
	n := &p.ensureRDMA().native
	isRequest := r.status == 0
	supported := e.native.qp != nil && r.a != 0 && n.state != declined && e.ensureNativePeer(p) == nil
	switch {
	case !isRequest && n.state == notNegotiated:
		e.failProtocol(p)
		return
	case n.state == agreed:
	case !supported || n.ah.Connect(uint32(r.a)) != nil:
		e.closeNativePeer(p)
		n.state = declined
	default:
		n.state = agreed
	}
	if isRequest {
		if p.rdmaState.replies.Len() >= maxAwaiting {
			e.failProtocol(p)
			return
		}
		response := reply{opMessage: opMessage{tag: tagToken, status: 1}}
		if n.state == agreed {
			response.a = uint64(n.ah.Token())
		}
		p.rdmaState.replies.Push(response)
	}
	e.flushPending(p)
}

// closeNativePeer destroys the adapter's handle of a peer. Its operations are
// flushed.
func (e *Endpoint) closeNativePeer(p *Peer) {
	if n := &p.rdmaState.native; n.ah != nil {
		_ = n.ah.Close()
		*n = nativeState{}
	}
}

// postNative posts an operation to the adapter.
func (e *Endpoint) postNative(op *Op) bool {
	if op.n == 0 {
		e.completeOp(op, nil)
		return true
	}
	n := &op.p.rdmaState.native
	wr := verbs.SendWR{WRID: uint64(op.id), Flags: verbs.SendSignaled, AH: n.ah, RemoteAddr: op.remote.Addr, RKey: op.remote.RKey,
		CompareAdd: op.a, Swap: op.b}
	var sge verbs.SGE
	switch op.kind {
	case opRead:
		wr.Opcode = verbs.WRRDMARead
	case opWrite:
		wr.Opcode = verbs.WRRDMAWrite
		if op.DelayAck {
			wr.Flags |= verbs.SendDelayAck
		}
	case opCompareSwap:
		wr.Opcode = verbs.WRAtomicCmpSwap
	case opFetchAdd:
		wr.Opcode = verbs.WRAtomicFetchAdd
	}
	if !op.kind.isAtomic() {
		sge = op.span.r.mr.SGE(op.span.off, op.n)
	} else {
		sge = e.native.atomicResults.SGE(8*int(uint16(op.id)), 8)
	}
	wr.SGList = append(e.native.sges[:0], sge)
	if _, err := e.native.qp.PostSend(append(e.native.wrs[:0], wr)); err != nil {
		e.completeOp(op, err)
		return true
	}
	op.posted = true
	return true
}

// handleNativeCompletion handles the completion of a native operation.
func (e *Endpoint) handleNativeCompletion(wc *verbs.WC) {
	op := e.ops.lookup(uint32(wc.WRID))
	if op == nil {
		return
	}
	p := op.p
	switch wc.Status {
	case verbs.WCSuccess:
		if op.kind.isAtomic() {
			op.old = binary.NativeEndian.Uint64(e.native.atomicResults.Bytes()[8*int(uint16(op.id)):])
		}
		e.completeOp(op, nil)
	case verbs.WCRemAccessErr:
		e.completeOp(op, ErrRemote)
	case verbs.WCRemInvReqErr:
		e.completeOp(op, ErrDenied)
	case verbs.WCRemOpErr:
		e.completeOp(op, ErrFault)
	case verbs.WCLocProtErr:
		e.completeOp(op, ErrLocal)
	case verbs.WCWRFlushErr:
		cause := error(ErrTimeout)
		if p.err != nil {
			cause = p.err
		}
		e.completeOp(op, cause)
	case verbs.WCRetryExcErr:
		cause := error(ErrTimeout)
		if wc.Failure != nil && wc.Failure.Err != nil {
			cause = fmt.Errorf("%w: %w", ErrTimeout, wc.Failure.Err)
		}
		e.completeOp(op, cause)
		e.failPeer(p, cause)
	default:
		e.completeOp(op, wc.Err())
	}
	if p.rdmaState.queue.Len() > 0 {
		e.flushPending(p)
	}
}
