package cm

import (
	"context"
	"sync"

	"github.com/softrnic/softrnic/verbs"
)

// refusalQueue hands the refused packets of queue pair 1 to the manager's goroutine. The
// adapter reports them with its locks held, which the manager takes while it holds its own.
type refusalQueue struct {
	mu   sync.Mutex
	list []*verbs.RefusedError
	wake context.CancelFunc
}

// maxRefusals bounds the list: a peer that is not told of now is refused again.
const maxRefusals = 64

// watchRefusals has the queue pair report.
func (m *Manager) watchRefusals() {
	if q, ok := m.gsi.qp.(verbs.RefusalReporter); ok {
		q.OnRefusal(m.refusals.add)
	}
}

// add takes a report, and wakes the goroutine.
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

// setWake has wake called for the next report, and reports whether some wait already.
func (r *refusalQueue) setWake(wake context.CancelFunc) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake = wake
	return len(r.list) > 0
}

// drain returns the reports that wait.
func (r *refusalQueue) drain() []*verbs.RefusedError {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}
