package rnic

import (
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

// A sharedReceiveQueue is a shared receive queue. Any number of queue pairs of its domain, on
// any shards, take receives from it.
type sharedReceiveQueue struct {
	pd *protectionDomain

	mu       sync.Mutex
	closed   bool
	queue    fifo.Slots[qp.RecvWQE]
	maxWR    int
	maxSGE   int
	limit    int // raises the event, 0 when disarmed
	attached int // queue pairs
}

var (
	_ verbs.SRQ      = (*sharedReceiveQueue)(nil)
	_ qp.SharedQueue = (*sharedQueue)(nil)
)

// CreateSRQ implements verbs.PD. Memory grows with the number of posted
// receives.
func (pd *protectionDomain) CreateSRQ(attr verbs.SRQInitAttr) (verbs.SRQ, error) {
	const op = "create SRQ"
	dev := pd.host.QueryDevice()
	switch {
	case attr.MaxSGE < 0:
		return nil, &verbs.OpError{Op: op, Err: verbs.ErrInvalid, Detail: fmt.Sprintf("MaxSGE is %d", attr.MaxSGE)}
	case attr.MaxSGE > dev.MaxSRQSGE:
		return nil, &verbs.OpError{Op: op, Err: verbs.ErrLimit,
			Detail: fmt.Sprintf("MaxSGE is %d, the limit of the device is %d", attr.MaxSGE, dev.MaxSRQSGE)}
	}
	srq := &sharedReceiveQueue{pd: pd, maxSGE: attr.MaxSGE}
	if err := srq.setLimits(attr.MaxWR, attr.Limit, dev.MaxSRQWR); err != nil {
		err.Op = op
		return nil, err
	}
	if err := pd.addRef(kindSRQ, op); err != nil {
		return nil, err
	}
	return srq, nil
}

// PostRecv implements verbs.SRQ. It returns the number of accepted receives;
// err explains the first that was not. The list may be reused at once; the
// memory it names belongs to the adapter until the completion.
func (s *sharedReceiveQueue) PostRecv(wrs []verbs.RecvWR) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDead() {
		return 0, s.newOpError("post receive", verbs.ErrClosed, "")
	}
	for i := range wrs {
		wr := &wrs[i]
		if len(wr.SGList) > s.maxSGE {
			return i, s.newOpError("post receive", verbs.ErrLimit,
				fmt.Sprintf("receive %d has %d elements, MaxSGE is %d", wr.WRID, len(wr.SGList), s.maxSGE))
		}
		slot := s.queue.Push(s.maxWR)
		if slot == nil {
			return i, s.newOpError("post receive", verbs.ErrQueueFull,
				fmt.Sprintf("the queue has space for %d receives; enlarge it with Modify", s.maxWR))
		}
		slot.ID = wr.WRID
		slot.SGList = append(slot.SGList[:0], wr.SGList...)
	}
	return len(wrs), nil
}

// A sharedQueue is an SRQ in its role as qp.SharedQueue.
type sharedQueue sharedReceiveQueue

// Pop implements qp.SharedQueue. It raises EventSRQLimitReached when fewer
// receives than the limit are left, also for a message that finds the queue
// empty, so that a limit set too late still fires.
func (q *sharedQueue) Pop(wqe *qp.RecvWQE) bool {
	s := (*sharedReceiveQueue)(q)
	s.mu.Lock()
	slot := s.queue.Pop()
	if slot != nil {
		wqe.ID = slot.ID
		wqe.SGList = append(wqe.SGList[:0], slot.SGList...)
	}
	reached := s.queue.Len() < s.limit
	if reached {
		s.limit = 0
	}
	s.mu.Unlock()
	if reached {
		s.pd.host.raiseEvent(verbs.AsyncEvent{Type: verbs.EventSRQLimitReached, SRQ: s})
	}
	return slot != nil
}

// PushFront implements qp.SharedQueue. The queue may exceed its size by one if
// it was filled up meanwhile.
func (q *sharedQueue) PushFront(wqe *qp.RecvWQE) {
	s := (*sharedReceiveQueue)(q)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	slot := s.queue.PushFront()
	slot.ID = wqe.ID
	slot.SGList = append(slot.SGList[:0], wqe.SGList...)
}

// Modify implements verbs.SRQ. It changes the size, not below the number of
// posted receives, or arms the limit (0 disarms), which may not exceed the
// size. On an error nothing changes.
func (s *sharedReceiveQueue) Modify(attr verbs.SRQAttr, mask verbs.SRQAttrMask) error {
	const op = "modify SRQ"
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isDead():
		return s.newOpError(op, verbs.ErrClosed, "")
	case mask&^(verbs.SRQMaxWR|verbs.SRQLimit) != 0:
		return s.newOpError(op, verbs.ErrInvalid, fmt.Sprintf("unknown attributes in %v", mask))
	}
	maxWR, limit := s.maxWR, s.limit
	if mask&verbs.SRQMaxWR != 0 {
		maxWR = attr.MaxWR
	}
	if mask&verbs.SRQLimit != 0 {
		limit = attr.Limit
	}
	if err := s.setLimits(maxWR, limit, s.pd.host.QueryDevice().MaxSRQWR); err != nil {
		err.Op, err.Object = op, "SRQ"
		return err
	}
	return nil
}

// setLimits changes size and limit if they fit each other, the queue and the
// device. s.mu is held.
func (s *sharedReceiveQueue) setLimits(maxWR, limit, most int) *verbs.OpError {
	refuse := func(err error, detail string, args ...any) *verbs.OpError {
		return &verbs.OpError{Err: err, Detail: fmt.Sprintf(detail, args...)}
	}
	switch {
	case maxWR < 1:
		return refuse(verbs.ErrInvalid, "MaxWR is %d; want at least 1", maxWR)
	case maxWR > most:
		return refuse(verbs.ErrLimit, "MaxWR is %d, the limit of the device is %d", maxWR, most)
	case maxWR < s.queue.Len() && maxWR != s.maxWR:
		return refuse(verbs.ErrInvalid, "MaxWR is %d, but %d receives are posted", maxWR, s.queue.Len())
	case limit < 0 || limit > maxWR:
		return refuse(verbs.ErrInvalid, "Limit is %d; want 0 (off) to MaxWR, which is %d", limit, maxWR)
	}
	s.maxWR, s.limit = maxWR, limit
	if fit := max(maxWR, s.queue.Len()); s.queue.Cap() > fit {
		s.queue.Resize(fit)
	}
	return nil
}

// Query implements verbs.SRQ. Limit is 0 once the event was raised.
func (s *sharedReceiveQueue) Query() (verbs.SRQAttr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDead() {
		return verbs.SRQAttr{}, s.newOpError("query SRQ", verbs.ErrClosed, "")
	}
	return verbs.SRQAttr{MaxWR: s.maxWR, MaxSGE: s.maxSGE, Limit: s.limit}, nil
}

// Close frees the queue and drops posted receives. It returns ErrBusy while a
// queue pair uses the queue, unless the device is closed. Close is idempotent.
func (s *sharedReceiveQueue) Close() error {
	first, err := s.close()
	if first {
		s.pd.release(kindSRQ)
	}
	return err
}

// close reports whether it is the first call.
func (s *sharedReceiveQueue) close() (first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false, nil
	case s.attached > 0 && !s.pd.host.isClosed():
		return false, s.newOpError("close SRQ", verbs.ErrBusy, fmt.Sprintf("queue pairs that use it: %d", s.attached))
	}
	s.closed = true
	s.limit = 0
	s.queue = fifo.Slots[qp.RecvWQE]{}
	return true, nil
}

// addQP counts a queue pair of pd created by op, until removeQP.
func (s *sharedReceiveQueue) addQP(pd *protectionDomain, op string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isDead():
		return s.newOpError(op, verbs.ErrClosed, "create the queue pair with another one")
	case s.pd != pd:
		return s.newOpError(op, verbs.ErrDomain, "create both in one protection domain")
	}
	s.attached++
	return nil
}

// removeQP undoes addQP.
func (s *sharedReceiveQueue) removeQP() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached--
}

// postedCount returns the number of posted receives.
func (s *sharedReceiveQueue) postedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Len()
}

// isDead reports whether the queue or its device is closed. s.mu is
// held.
func (s *sharedReceiveQueue) isDead() bool { return s.closed || s.pd.host.isClosed() }

func (s *sharedReceiveQueue) newOpError(op string, err error, detail string) error {
	return &verbs.OpError{Op: op, Object: "SRQ", Err: err, Detail: detail}
}
