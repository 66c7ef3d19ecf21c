// Package procpmi is the process manager of ranks that are workers of package proc. The
// key-value pairs of the ranks travel through the parent, in exchanges.
//
//	proc.Register("bench", "rank", func(ctx context.Context, w *proc.Worker) error {
//		m, err := procpmi.New(ctx, w) // a pmi.Manager
//		world, err := mpi.Init(open, mpi.Options{Manager: m})
//		...
//	})
package procpmi

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"sync"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// A manager is the process manager of a rank, implemented by exchanges among the workers.
type manager struct {
	w  *proc.Worker
	id string

	mu    sync.Mutex        // also held during a fence
	put   map[string]string // put since the last fence
	known map[string]string
}

// New returns the process manager of w's rank, which is w.Rank. It blocks until all workers of
// the group have called it.
func New(ctx context.Context, w *proc.Worker) (pmi.Manager, error) {
	ids, err := proc.Exchange(ctx, w, rand.Text())
	if err != nil {
		return nil, err
	}
	return &manager{w: w, id: ids[0], put: map[string]string{}, known: map[string]string{}}, nil
}

func (m *manager) Rank() int     { return m.w.Rank }
func (m *manager) Size() int     { return m.w.Size }
func (m *manager) JobID() string { return m.id }
func (m *manager) Node(int) int  { return 0 }

func (m *manager) Put(key, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put[key] = value
	return nil
}

func (m *manager) Get(_ context.Context, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok := m.known[key]; ok {
		return value, nil
	}
	return "", fmt.Errorf("key %q: %w", key, pmi.ErrNotFound)
}

// Fence exchanges the pairs put since the last fence. It holds the lock: a peer that has
// completed the fence may make this rank connect, and the connection then needs the pairs of
// this fence.
func (m *manager) Fence(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, err := proc.Exchange(ctx, m.w, m.put)
	if err != nil {
		return err
	}
	clear(m.put)
	for _, pairs := range all {
		maps.Copy(m.known, pairs)
	}
	return nil
}

// Abort returns an error that ends the worker, and with it the group.
func (m *manager) Abort(code int, why string) error {
	return fmt.Errorf("rank %d aborted the job with code %d: %s", m.w.Rank, code, why)
}

func (m *manager) Finalize() error { return nil }
