package rdm

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// Native RDMA: the adapters at both ends do it. They have agreed on it by messages
// (TOKEN), so that nothing of it goes to others:
//
//	TOKEN, status 0, a: mine   do you, too? Show this.
//	TOKEN, status 1, a: mine   yes; with 0: no
const tagToken = 'T'

// adapter is what the adapter at this end does by itself.
type adapter struct {
	qp    verbs.DatagramRDMA // nil: nothing
	words verbs.MR           // what atomics find, by place of the operation

	wrs  [1]verbs.SendWR // to be used again
	sges [1]verbs.SGE
}

// native is the agreement with a peer.
type native struct {
	ah    verbs.PeerAH
	state agreement
}

type agreement uint8

const (
	unasked agreement = iota
	asked
	declined
	agreed
)

// way is how operations go to a peer.
type way uint8

const (
	wayUnknown way = iota
	wayEmulated
	wayNative
)

// Native reports whether the adapters carry out operations on the peer's memory by
// themselves. It is agreed upon with the first operation.
func (p *Peer) Native() bool {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	return p.sided != nil && p.sided.native.state == agreed
}

// nativeQueuePair asks the adapter for RDMA when the queue pair is made.
func (e *Endpoint) nativeQueuePair(a *verbs.QPInitAttr) {
	if !e.o.Emulate {
		a.MaxDatagramRDMA = e.o.Ops
	}
}

// nativeInit finds out whether it can.
func (e *Endpoint) nativeInit() (err error) {
	if e.native.qp, _ = e.port.QP.(verbs.DatagramRDMA); e.native.qp == nil || e.o.Emulate {
		e.native.qp = nil
		return nil
	}
	e.native.words, err = e.port.PD.RegMR(make([]byte, 8*e.o.Ops), verbs.AccessLocalWrite)
	return err
}

func (e *Endpoint) nativeClose() error {
	if e.native.words == nil {
		return nil
	}
	return e.native.words.Dereg()
}

// way finds out how operations go to a peer, and asks it if need be.
func (e *Endpoint) way(p *Peer) way {
	n := &p.sided.native
	switch {
	case n.state == agreed:
		return wayNative
	case n.state == declined || e.native.qp == nil:
		return wayEmulated
	case n.state == unasked:
		if e.nativePeer(p) != nil {
			n.state = declined
			return wayEmulated
		}
		if e.tell(p, &request{tag: tagToken, a: uint64(n.ah.Token())}, nil, true) {
			n.state = asked
		}
	}
	return wayUnknown
}

// nativePeer makes the adapter's handle of a peer, if there is none.
func (e *Endpoint) nativePeer(p *Peer) (err error) {
	n := &p.rdma().native
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

// negotiated takes a TOKEN.
func (e *Endpoint) negotiated(p *Peer, r *request) {
	n := &p.rdma().native
	question := r.status == 0
	able := e.native.qp != nil && r.a != 0 && n.state != declined && e.nativePeer(p) == nil
	switch {
	case !question && n.state == unasked:
		e.breach(p)
		return
	case n.state == agreed:
	case !able || n.ah.Connect(uint32(r.a)) != nil:
		e.endNative(p)
		n.state = declined
	default:
		n.state = agreed
	}
	if question {
		if p.sided.replies.Len() >= maxAsked {
			e.breach(p)
			return
		}
		answer := reply{request: request{tag: tagToken, status: 1}}
		if n.state == agreed {
			answer.a = uint64(n.ah.Token())
		}
		p.sided.replies.Push(answer)
	}
	e.pump(p)
}

// endNative ends the adapter's part with a peer. Its operations are flushed.
func (e *Endpoint) endNative(p *Peer) {
	if n := &p.sided.native; n.ah != nil {
		_ = n.ah.Destroy()
		*n = native{}
	}
}

// postNative hands an operation to the adapter.
func (e *Endpoint) postNative(op *Op) bool {
	if op.n == 0 {
		e.complete(op, nil)
		return true
	}
	n := &op.p.sided.native
	wr := verbs.SendWR{WRID: uint64(op.id), Flags: verbs.SendSignaled, AH: n.ah, RemoteAddr: op.remote.Addr, RKey: op.remote.RKey,
		CompareAdd: op.a, Swap: op.b}
	var sge verbs.SGE
	switch op.kind {
	case opRead:
		wr.Opcode = verbs.WRRDMARead
	case opWrite:
		wr.Opcode = verbs.WRRDMAWrite
		if op.Unhurried {
			wr.Flags |= verbs.SendUnhurried
		}
	case opCompareSwap:
		wr.Opcode = verbs.WRAtomicCmpSwap
	case opFetchAdd:
		wr.Opcode = verbs.WRAtomicFetchAdd
	}
	if op.kind <= opWrite {
		sge = op.span.r.mr.SGE(op.span.off, op.n)
	} else {
		sge = e.native.words.SGE(8*int(uint16(op.id)), 8)
	}
	wr.SGList = append(e.native.sges[:0], sge)
	if _, err := e.native.qp.PostSend(append(e.native.wrs[:0], wr)); err != nil {
		e.complete(op, err)
		return true
	}
	op.posted = true
	return true
}

// nativeDone takes the completion of an operation.
func (e *Endpoint) nativeDone(wc *verbs.WC) {
	op := e.ops.find(uint32(wc.WRID))
	if op == nil {
		return
	}
	p := op.p
	switch wc.Status {
	case verbs.WCSuccess:
		if op.kind > opWrite {
			op.old = binary.NativeEndian.Uint64(e.native.words.Bytes()[8*int(uint16(op.id)):])
		}
		e.complete(op, nil)
	case verbs.WCRemAccessErr:
		e.complete(op, ErrRemote)
	case verbs.WCRemInvReqErr:
		e.complete(op, ErrDenied)
	case verbs.WCRemOpErr:
		e.complete(op, ErrFault)
	case verbs.WCLocProtErr:
		e.complete(op, ErrLocal)
	case verbs.WCWRFlushErr:
		why := error(ErrSilent)
		if p.err != nil {
			why = p.err
		}
		e.complete(op, why)
	case verbs.WCRetryExcErr:
		why := error(ErrSilent)
		if wc.Why != nil && wc.Why.Err != nil {
			why = fmt.Errorf("%w: %w", ErrSilent, wc.Why.Err)
		}
		e.complete(op, why)
		e.lose(p, why)
	default:
		e.complete(op, wc.Err())
	}
	if p.sided.queue.Len() > 0 {
		e.pump(p)
	}
}
