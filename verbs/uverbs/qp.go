//go:build linux

package uverbs

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/internal/qpstate"
	"github.com/softrnic/softrnic/verbs"
)

// A queuePair is a verbs.QP.
type queuePair struct {
	handleGuard
	pd             *protectionDomain
	number         uint32
	init           verbs.QPInitAttr
	sendCQ, recvCQ *completionQueue
	srq            *sharedReceiveQueue // or nil
	userHandle     uint64
	maxDatagram    int // UD: bytes of the port's MTU
	asyncs         eventCount

	modifying sync.Mutex    // held by Modify
	state     atomic.Uint32 // verbs.QPState that Modify has set
	failed    atomic.Bool   // a request has failed since Modify set the state

	receives receiveRing

	sendMu   sync.Mutex
	ring     *ring // nil if closed
	doorbell []byte
	response postSendResponse
}

// CreateQP implements verbs.PD.
func (pd *protectionDomain) CreateQP(a verbs.QPInitAttr) (_ verbs.QP, err error) {
	const op = "create QP"
	d := pd.dev
	if err := pd.checkOpen(d, op, pd); err != nil {
		return nil, err
	}
	q := &queuePair{pd: pd, init: a}
	if err := q.validateInit(op, &a); err != nil {
		return nil, err
	}
	body := createQP{pd: pd.handle, sendCQ: q.sendCQ.handle, recvCQ: q.recvCQ.handle, maxSendWR: uint32(a.Cap.MaxSendWR), maxRecvWR: uint32(a.Cap.MaxRecvWR),
		maxSendSGE: uint32(a.Cap.MaxSendSGE), maxRecvSGE: uint32(a.Cap.MaxRecvSGE), maxInline: uint32(a.Cap.MaxInlineData), kind: uint8(a.Type)}
	if a.Cap.MaxInlineData > 0 { // rxe counts inline data as an element, and fails the request without one
		body.maxSendSGE = max(body.maxSendSGE, 1)
	}
	if q.srq != nil {
		body.srq, body.hasSRQ = q.srq.handle, 1
		body.maxRecvWR, body.maxRecvSGE = 0, 0
	}
	if !a.SelectiveSignaling {
		body.signalAll = 1
	}
	if q.userHandle, err = d.addObject(q); err != nil {
		return nil, opError(op, d.String(), err)
	}
	body.userHandle = q.userHandle
	var r createQPResponse
	if err := execute(d.file, cmdCreateQP, &body, &r); err != nil {
		d.removeObject(q.userHandle)
		return nil, opError(op, d.String(), err)
	}
	q.handle, q.number = r.handle, r.number
	if err := q.mapRings(&r); err != nil {
		q.destroyObject()
		return nil, opError(op, d.String(), err)
	}
	d.mu.Lock()
	d.pairs[q.number] = q
	d.mu.Unlock()
	return q, nil
}

// validateInit validates the attributes and stores the objects they name in q.
func (q *queuePair) validateInit(op string, a *verbs.QPInitAttr) error {
	d := q.pd.dev
	unsupported := func(format string, args ...any) error {
		return &verbs.OpError{Op: op, Err: verbs.ErrUnsupported, Detail: fmt.Sprintf(format, args...)}
	}
	var ok bool
	switch {
	case a.Type == verbs.GSI:
		return unsupported("queue pair type GSI: that of a kernel device belongs to the kernel")
	case a.Type != verbs.RC && a.Type != verbs.UC && a.Type != verbs.UD:
		return unsupported("queue pair type %v", a.Type)
	case a.SelectiveSignaling && a.SignalAll:
		return invalidError(op, "", "SelectiveSignaling and SignalAll exclude each other")
	case a.MaxDatagramRDMA != 0:
		return unsupported("MaxDatagramRDMA: RDMA over datagrams needs package rnic at both ends")
	case a.Congestion != "" && a.Congestion != "off":
		return unsupported("Congestion %q: rxe has no congestion control", a.Congestion)
	}
	if q.sendCQ, ok = a.SendCQ.(*completionQueue); !ok || q.sendCQ == nil || q.sendCQ.dev != d {
		return invalidError(op, "", "SendCQ must be a completion queue of this device")
	}
	if q.recvCQ, ok = a.RecvCQ.(*completionQueue); !ok || q.recvCQ == nil || q.recvCQ.dev != d {
		return invalidError(op, "", "RecvCQ must be a completion queue of this device")
	}
	if a.SRQ != nil {
		if q.srq, ok = a.SRQ.(*sharedReceiveQueue); !ok || q.srq == nil || q.srq.pd.dev != d {
			return invalidError(op, "", "SRQ must be a shared receive queue of this device")
		}
		if q.srq.pd != q.pd {
			return &verbs.OpError{Op: op, Object: q.srq.String(), Err: verbs.ErrDomain}
		}
	}
	size := a.Cap
	if q.srq != nil { // receives are posted there
		size.MaxRecvWR, size.MaxRecvSGE = 0, 0
	}
	for _, l := range []struct {
		name      string
		have, max int
	}{
		{"MaxSendWR", size.MaxSendWR, int(d.attr.maxQPWR)}, {"MaxRecvWR", size.MaxRecvWR, int(d.attr.maxQPWR)},
		{"MaxSendSGE", size.MaxSendSGE, int(d.attr.maxSGE)}, {"MaxRecvSGE", size.MaxRecvSGE, int(d.attr.maxSGE)},
		{"MaxInlineData", size.MaxInlineData, rxeMaxInline},
	} {
		if l.have < 0 || l.have > l.max {
			return limitError(op, "", l.name, l.have, l.max)
		}
	}
	return nil
}

// mapRings maps the queues that the kernel has created, and prepares the doorbell.
func (q *queuePair) mapRings(r *createQPResponse) (err error) {
	f := q.pd.dev.file
	if q.srq == nil {
		if q.receives.ring, err = f.mapQueue(r.recv); err != nil {
			return err
		}
	}
	if q.ring, err = f.mapQueue(r.send); err != nil {
		return err
	}
	q.receives.maxWR, q.receives.maxSGE = int(r.maxRecvWR), int(r.maxRecvSGE)
	q.init.Cap.MaxSendWR, q.init.Cap.MaxSendSGE, q.init.Cap.MaxInlineData = int(r.maxSendWR), int(r.maxSendSGE), int(r.maxInline)
	if q.srq == nil {
		q.init.Cap.MaxRecvWR, q.init.Cap.MaxRecvSGE = int(r.maxRecvWR), int(r.maxRecvSGE)
	}
	data := max(q.init.Cap.MaxSendSGE*sgeSize, q.init.Cap.MaxInlineData)
	if have, want := q.ring.elementSize(), int(unsafe.Sizeof(sendElement{}))+data; have < want {
		return fmt.Errorf("send queue with elements of %d bytes: want %d for %d bytes of data", have, want, data)
	}
	if have, want := q.receives.ring, int(unsafe.Sizeof(recvElement{}))+q.receives.maxSGE*sgeSize; have != nil && have.elementSize() < want {
		return fmt.Errorf("receive queue with elements of %d bytes: want %d", have.elementSize(), want)
	}
	if q.init.Type == verbs.UD {
		port, err := q.pd.dev.queryPort(1)
		if err != nil {
			return err
		}
		q.maxDatagram = verbs.MTU(port.activeMTU).Bytes()
	}
	body := postSend{handle: q.handle, size: requestSize}
	q.doorbell = encodeCommand(nil, cmdPostSend, bytesOf(&body), bytesOf(&q.response))
	return nil
}

// String returns the name of the queue pair for errors.
func (q *queuePair) String() string { return fmt.Sprintf("QP %#x", q.number) }

// Num implements verbs.QP.
func (q *queuePair) Num() uint32 { return q.number }

// Type implements verbs.QP.
func (q *queuePair) Type() verbs.QPType { return q.init.Type }

// PostRecv implements verbs.QP.
func (q *queuePair) PostRecv(wrs []verbs.RecvWR) (int, error) {
	const op = "post receive"
	if q.srq != nil {
		return 0, invalidError(op, q.String(), "the queue pair has a shared receive queue; post there")
	}
	state := verbs.QPState(q.state.Load())
	if !qpstate.MayReceive(state) {
		return 0, &verbs.OpError{Op: op, Object: q.String(), Err: verbs.ErrState, Detail: "state " + state.String() + "; modify it to INIT first"}
	}
	n, err := q.receives.postReceives(q, wrs)
	if n > 0 && (state == verbs.StateErr || q.failed.Load()) {
		q.flushReceives()
	}
	return n, err
}

// flushReceives makes the kernel flush receives that were posted in StateErr: rxe looks at them when
// a message arrives or the state is set.
func (q *queuePair) flushReceives() {
	if attr, _ := q.Query(); attr.State == verbs.StateErr {
		_ = execute(q.pd.dev.file, cmdModifyQP, &modifyQP{handle: q.handle, mask: uint32(verbs.AttrState), state: uint8(verbs.StateErr)}, &none{})
	}
}

// AttachMcast implements verbs.QP.
func (q *queuePair) AttachMcast(group verbs.GID) error {
	return q.changeMembership("attach multicast", cmdAttachMcast, group)
}

// DetachMcast implements verbs.QP.
func (q *queuePair) DetachMcast(group verbs.GID) error {
	return q.changeMembership("detach multicast", cmdDetachMcast, group)
}

func (q *queuePair) changeMembership(op string, command uint32, group verbs.GID) error {
	if err := q.checkOpen(q.pd.dev, op, q); err != nil {
		return err
	}
	switch {
	case q.init.Type != verbs.UD:
		return &verbs.OpError{Op: op, Object: q.String(), Err: verbs.ErrUnsupported, Detail: fmt.Sprintf("%v: want UD", q.init.Type)}
	case !group.Addr().IsMulticast():
		return invalidError(op, q.String(), "%v is not a multicast address", group.Addr())
	}
	return opError(op, q.String(), execute(q.pd.dev.file, command, &multicast{group: group, handle: q.handle}, &none{}))
}

// handleAsync implements object.
func (q *queuePair) handleAsync(kind verbs.EventType) verbs.AsyncEvent {
	q.asyncs.addHandled()
	switch kind {
	case verbs.EventQPFatal, verbs.EventQPReqErr, verbs.EventQPAccessErr:
		q.failed.Store(true)
	}
	return verbs.AsyncEvent{Type: kind, QP: q}
}

// discardMemory implements object.
func (q *queuePair) discardMemory() {
	f := q.pd.dev.file
	q.receives.unmapRing(f)
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	_ = f.unmapQueue(q.ring)
	q.ring = nil
}

// destroyObject destroys the kernel's object and releases the queues.
func (q *queuePair) destroyObject() error {
	var r destroyResponse
	if err := execute(q.pd.dev.file, cmdDestroyQP, &destroyBody{handle: q.handle}, &r); err != nil {
		return err
	}
	q.asyncs.waitFor(r.asyncs)
	d := q.pd.dev
	d.removeObject(q.userHandle)
	d.mu.Lock()
	delete(d.pairs, q.number)
	d.mu.Unlock()
	q.discardMemory()
	return nil
}

// Close implements verbs.QP.
func (q *queuePair) Close() error {
	return q.closeObject(q.pd.dev, q, func() error {
		if err := q.destroyObject(); err != nil {
			return err
		}
		q.dropCompletions()
		return nil
	})
}

// dropCompletions drops the completions that have not been polled.
func (q *queuePair) dropCompletions() {
	q.sendCQ.dropCompletions(q.number)
	if q.recvCQ != q.sendCQ {
		q.recvCQ.dropCompletions(q.number)
	}
}
