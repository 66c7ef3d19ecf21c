package cm

import (
	"context"
	"sync"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/verbs"
)

// A refusalQueue passes refused packets of queue pair 1 to the manager's goroutine. The adapter
// reports them with its own locks held, and the manager acquires those locks while it holds m.mu,
// so a direct call could deadlock.
type refusalQueue struct {
	mu   sync.Mutex
	list []*verbs.RefusedError
	wake context.CancelFunc
}

// maxRefusals bounds the queue. A refusal beyond it is dropped; the next transmission to the peer
// reports it again.
const maxRefusals = 64

// watchRefusals registers the queue for refusals of queue pair 1.
func (m *Manager) watchRefusals() {
	if q, ok := m.gsi.qp.(adapter.RefusalReporter); ok {
		q.OnRefusal(m.refusals.add)
	}
}

// add enqueues a refusal and wakes the goroutine.
func (r *refusalQueue) add(e *verbs.RefusedError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) < maxRefusals {
		r.list = append(r.list, e)
	}
	if r.wake != nil {
		r.wake()
	}
}

// setWake sets the function that add calls, and reports whether the queue has elements.
func (r *refusalQueue) setWake(wake context.CancelFunc) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake = wake
	return len(r.list) > 0
}

// drain removes and returns all queued refusals.
func (r *refusalQueue) drain() []*verbs.RefusedError {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}
