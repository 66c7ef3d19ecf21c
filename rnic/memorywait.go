package rnic

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/wire"
)

// The memoryWaiters are the goroutines in WaitUntil that sleep, so that a peer's request to write
// memory wakes them. If there are none, a packet costs one load.
type memoryWaiters struct {
	count  atomic.Int32
	mu     sync.Mutex
	parked []chan struct{}
}

// writesMemory reports whether a request with this opcode writes memory of the target.
func writesMemory(o wire.Opcode) bool {
	switch o.Info().Operation {
	case wire.OpWrite, wire.OpCmpSwap, wire.OpFetchAdd, wire.OpAtomicWrite:
		return true
	}
	return false
}

// add makes writes wake the receiver of wake, until remove. Earlier writes do not: check the
// memory afterwards. wake may be nil, for a leader that sleeps in its socket.
func (m *memoryWaiters) add(wake chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count.Add(1)
	if wake != nil {
		m.parked = append(m.parked, wake)
	}
}

func (m *memoryWaiters) remove(wake chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count.Add(-1)
	if wake != nil {
		i := slices.Index(m.parked, wake)
		m.parked = slices.Delete(m.parked, i, i+1)
	}
}

// exist reports whether there are any. Call it after the write.
func (m *memoryWaiters) exist() bool { return m.count.Load() > 0 }

// wakeMemoryWaiters makes every goroutine in WaitUntil that sleeps look at its memory again.
func (d *Device) wakeMemoryWaiters() {
	for _, s := range d.shards {
		if s.leader.Load() != nil && s.token.isAsleep() {
			s.socket.Wake()
		}
	}
	m := &d.memoryWaiters
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, wake := range m.parked {
		select {
		case wake <- struct{}{}:
			d.wakeups.Add(1)
		default:
		}
	}
}
