package pmi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"sync"
)

// NewLocal returns the managers of a job of n ranks in one process, for tests and
// examples, and for a process that nobody has started as a rank (n is 1). All
// ranks are on node 0. Who aborts the job makes everybody's calls fail with an
// *AbortError; no process ends. It panics if n is less than 1.
func NewLocal(n int) []Manager {
	if n < 1 {
		panic(fmt.Sprintf("pmi: a job of %d ranks", n))
	}
	id := make([]byte, 16)
	rand.Read(id)
	j := &localJob{id: "local-" + hex.EncodeToString(id), size: n, known: map[string]string{}, put: map[string]string{}, gate: make(chan struct{}), over: make(chan struct{})}
	list := make([]Manager, n)
	for i := range list {
		list[i] = &local{job: j, rank: i, turn: make(chan struct{}, 1)}
	}
	return list
}

// localJob is what the ranks share.
type localJob struct {
	id   string
	size int

	mu      sync.Mutex
	known   map[string]string // put before the last fence
	put     map[string]string // since
	waiting int               // ranks at the fence
	gate    chan struct{}     // closed when all have come
	over    chan struct{}     // closed by Abort
	abort   *AbortError
}

// local is the view of one rank.
type local struct {
	job  *localJob
	rank int
	turn chan struct{} // full while this rank is in Fence

	// Under the job's lock.
	at        chan struct{} // the gate of a fence that was given up
	finalized bool
}

func (l *local) Rank() int     { return l.rank }
func (l *local) Size() int     { return l.job.size }
func (l *local) JobID() string { return l.job.id }

func (l *local) Node(rank int) int {
	if rank < 0 || rank >= l.job.size {
		panic(fmt.Sprintf("pmi: no rank %d in a job of %d", rank, l.job.size))
	}
	return 0
}

// check says why nothing can be asked. The caller has the lock.
func (l *local) check() error {
	if l.job.abort != nil {
		return l.job.abort
	}
	if l.finalized {
		return ErrFinalized
	}
	return nil
}

func (l *local) Put(key, value string) error {
	if err := checkPut(key, value); err != nil {
		return err
	}
	l.job.mu.Lock()
	defer l.job.mu.Unlock()
	if err := l.check(); err != nil {
		return err
	}
	l.job.put[key] = value
	return nil
}

func (l *local) Get(ctx context.Context, key string) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	l.job.mu.Lock()
	defer l.job.mu.Unlock()
	if err := l.check(); err != nil {
		return "", err
	}
	value, ok := l.job.known[key]
	if !ok {
		return "", fmt.Errorf("key %q: %w", key, ErrNotFound)
	}
	return value, nil
}

func (l *local) Fence(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	gate, err := l.arrive()
	if err != nil {
		return err
	}
	select {
	case <-gate:
	case <-l.job.over:
		return l.job.abort
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.job.mu.Lock()
	defer l.job.mu.Unlock()
	l.at = nil
	return nil
}

// arrive comes to the fence, if this rank is not there already, and returns its
// gate.
func (l *local) arrive() (chan struct{}, error) {
	j := l.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := l.check(); err != nil {
		return nil, err
	}
	if l.at != nil {
		return l.at, nil
	}
	l.at = j.gate
	if j.waiting++; j.waiting == j.size {
		maps.Copy(j.known, j.put)
		clear(j.put)
		close(j.gate)
		j.gate, j.waiting = make(chan struct{}), 0
	}
	return l.at, nil
}

func (l *local) Abort(code int, why string) error {
	l.job.mu.Lock()
	defer l.job.mu.Unlock()
	if err := l.check(); err != nil {
		return err
	}
	l.job.abort = &AbortError{Rank: l.rank, Code: code, Why: why}
	close(l.job.over)
	return nil
}

func (l *local) Finalize() error {
	l.job.mu.Lock()
	defer l.job.mu.Unlock()
	if err := l.check(); err != nil {
		return err
	}
	l.finalized = true
	return nil
}
