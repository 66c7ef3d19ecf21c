//go:build linux

package uverbs

import (
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// A sharedReceiveQueue is a verbs.SRQ.
type sharedReceiveQueue struct {
	handleGuard
	pd         *protectionDomain
	userHandle uint64
	number     uint32
	receives   receiveRing
	asyncs     eventCount
	moved      queueInfo // of a resized queue, stored by the kernel
}

// CreateSRQ implements verbs.PD.
func (pd *protectionDomain) CreateSRQ(a verbs.SRQInitAttr) (_ verbs.SRQ, err error) {
	const op = "create SRQ"
	d := pd.dev
	if err := pd.checkOpen(d, op, pd); err != nil {
		return nil, err
	}
	for _, l := range []struct {
		name      string
		have, max int
	}{{"MaxWR", a.MaxWR, int(d.attr.maxSRQWR)}, {"MaxSGE", a.MaxSGE, int(d.attr.maxSRQSGE)}, {"Limit", a.Limit, a.MaxWR}} {
		if l.have < 0 || l.have > l.max {
			return nil, limitError(op, "", l.name, l.have, l.max)
		}
	}
	s := &sharedReceiveQueue{pd: pd}
	if s.userHandle, err = d.addObject(s); err != nil {
		return nil, opError(op, d.String(), err)
	}
	body := createSRQ{userHandle: s.userHandle, pd: pd.handle, maxWR: uint32(max(a.MaxWR, 1)), maxSGE: uint32(max(a.MaxSGE, 1)), limit: uint32(a.Limit)}
	var r createSRQResponse
	if err := execute(d.file, cmdCreateSRQ, &body, &r); err != nil {
		d.removeObject(s.userHandle)
		return nil, opError(op, d.String(), err)
	}
	s.handle, s.number = r.handle, r.queueNumber
	s.receives.maxWR, s.receives.maxSGE = int(r.maxWR), int(r.maxSGE)
	if s.receives.ring, err = d.file.mapQueue(r.queue); err != nil {
		_ = execute(d.file, cmdDestroySRQ, &destroyBody{handle: r.handle}, &destroyResponse{})
		d.removeObject(s.userHandle)
		return nil, opError(op, d.String(), err)
	}
	return s, nil
}

// String returns the name of the queue for errors.
func (s *sharedReceiveQueue) String() string { return fmt.Sprintf("SRQ %d", s.number) }

// PostRecv implements verbs.SRQ.
func (s *sharedReceiveQueue) PostRecv(wrs []verbs.RecvWR) (int, error) {
	return s.receives.postReceives(s, wrs)
}

// Modify implements verbs.SRQ. A new size makes the kernel move the receives to another queue.
func (s *sharedReceiveQueue) Modify(a verbs.SRQAttr, mask verbs.SRQAttrMask) error {
	const op = "modify SRQ"
	d := s.pd.dev
	if err := s.checkOpen(d, op, s); err != nil {
		return err
	}
	switch {
	case mask&^(verbs.SRQMaxWR|verbs.SRQLimit) != 0:
		return invalidError(op, s.String(), "mask %v has unknown attributes", mask)
	case mask&verbs.SRQMaxWR != 0 && (a.MaxWR < 1 || a.MaxWR > int(d.attr.maxSRQWR)):
		return limitError(op, s.String(), "MaxWR", a.MaxWR, int(d.attr.maxSRQWR))
	case mask&verbs.SRQLimit != 0 && a.Limit < 0:
		return limitError(op, s.String(), "Limit", a.Limit, int(d.attr.maxSRQWR))
	}
	s.receives.mu.Lock()
	defer s.receives.mu.Unlock()
	if s.receives.ring == nil {
		return closedError(op, s.String())
	}
	s.moved = queueInfo{}
	body := modifySRQ{handle: s.handle, mask: uint32(mask), maxWR: uint32(a.MaxWR), limit: uint32(a.Limit), queue: uint64(uintptr(unsafe.Pointer(&s.moved)))}
	if err := execute(d.file, cmdModifySRQ, &body, &none{}); err != nil {
		return opError(op, s.String(), err)
	}
	if mask&verbs.SRQMaxWR == 0 || s.moved.size == 0 {
		return nil
	}
	resized, err := d.file.mapQueue(s.moved)
	if err != nil {
		return opError(op, s.String(), err)
	}
	old := s.receives.ring
	s.receives.ring, s.receives.maxWR = resized, a.MaxWR
	return opError(op, s.String(), d.file.unmapQueue(old))
}

// Query implements verbs.SRQ.
func (s *sharedReceiveQueue) Query() (verbs.SRQAttr, error) {
	const op = "query SRQ"
	if err := s.checkOpen(s.pd.dev, op, s); err != nil {
		return verbs.SRQAttr{}, err
	}
	var r querySRQResponse
	if err := execute(s.pd.dev.file, cmdQuerySRQ, &destroyBody{handle: s.handle}, &r); err != nil {
		return verbs.SRQAttr{}, opError(op, s.String(), err)
	}
	s.receives.mu.Lock()
	defer s.receives.mu.Unlock()
	return verbs.SRQAttr{MaxWR: s.receives.maxWR, MaxSGE: int(r.maxSGE), Limit: int(r.limit)}, nil
}

// handleAsync implements object.
func (s *sharedReceiveQueue) handleAsync(kind verbs.EventType) verbs.AsyncEvent {
	s.asyncs.addHandled()
	return verbs.AsyncEvent{Type: kind, SRQ: s}
}

// discardMemory implements object.
func (s *sharedReceiveQueue) discardMemory() { s.receives.unmapRing(s.pd.dev.file) }

// Close implements verbs.SRQ.
func (s *sharedReceiveQueue) Close() error {
	return s.closeObject(s.pd.dev, s, func() error {
		var r destroyResponse
		if err := execute(s.pd.dev.file, cmdDestroySRQ, &destroyBody{handle: s.handle}, &r); err != nil {
			return err
		}
		s.asyncs.waitFor(r.asyncs)
		s.pd.dev.removeObject(s.userHandle)
		s.discardMemory()
		return nil
	})
}
