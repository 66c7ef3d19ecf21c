package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/softrnic/softrnic/internal/vtime"
)

// A job is the state of the process manager.
type job struct {
	values  map[string]string
	waiting int    // hosts in the fence
	fences  uint64 // completed
	aborted error
}

// A Manager is the process manager of a job with one rank on each host. It implements pmi.Manager
// and takes no time.
type Manager struct {
	host *Host
	job  *job
}

// Manager returns the process manager of the host's rank.
func (h *Host) Manager() *Manager { return &Manager{h, &h.cluster.job} }

var (
	errNotFound = errors.New("key not found")
	errAborted  = errors.New("job aborted")
)

// Rank returns the number of the host.
func (m *Manager) Rank() int { return m.host.number }

// Size returns the number of hosts.
func (m *Manager) Size() int { return len(m.host.cluster.hosts) }

// JobID returns a string that is the same on all ranks.
func (m *Manager) JobID() string {
	return "simulated-" + strconv.FormatUint(m.host.cluster.options.Seed, 10)
}

// Put publishes a value.
func (m *Manager) Put(key, value string) error {
	m.job.values[key] = value
	return m.job.aborted
}

// Get returns a value.
func (m *Manager) Get(_ context.Context, key string) (string, error) {
	v, ok := m.job.values[key]
	if !ok {
		return "", fmt.Errorf("%s: %w", key, errNotFound)
	}
	return v, m.job.aborted
}

// Fence waits until all ranks have called it.
func (m *Manager) Fence(ctx context.Context) error {
	j, number := m.job, m.job.fences
	if j.waiting++; j.waiting == m.Size() {
		j.waiting = 0
		j.fences++
		m.wakeAll()
	}
	vtime.WaitUntil(func() bool { return j.fences != number || j.aborted != nil || ctx.Err() != nil })
	switch {
	case j.fences != number:
		return nil
	case j.aborted != nil:
		return j.aborted
	}
	return ctx.Err()
}

// wakeAll makes all hosts check the conditions that they wait for.
func (m *Manager) wakeAll() {
	for _, h := range m.host.cluster.hosts {
		h.wakeGoroutines()
	}
}

// Node returns the number of the rank's host.
func (m *Manager) Node(rank int) int { return rank }

// Abort makes all fences fail.
func (m *Manager) Abort(code int, cause string) error {
	m.job.aborted = fmt.Errorf("%w: code %d: %s", errAborted, code, cause)
	m.wakeAll()
	return nil
}

// Finalize does nothing.
func (m *Manager) Finalize() error { return nil }
