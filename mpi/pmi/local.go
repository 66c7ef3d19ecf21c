package pmi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// NewLocal returns the managers of a job of n ranks in one process, for tests and
// examples, and for a process without a manager (n is 1). All ranks are on node 0.
// Abort makes all calls of all ranks fail with ErrAborted; the process does not
// exit. NewLocal panics if n is less than 1.
func NewLocal(n int) []Manager {
	if n < 1 {
		panic(fmt.Sprintf("pmi: local job: %d ranks", n))
	}
	id := make([]byte, 16)
	rand.Read(id)
	j := &localJob{id: "local-" + hex.EncodeToString(id), size: n, committed: map[string]string{}, uncommitted: map[string]string{}, fence: make(chan struct{}), aborted: make(chan struct{})}
	list := make([]Manager, n)
	for i := range list {
		list[i] = &local{job: j, rank: i, sem: make(chan struct{}, 1)}
	}
	return list
}

// A localJob is the state shared by the ranks.
type localJob struct {
	id   string
	size int

	mu          sync.Mutex
	committed   map[string]string // put before the last fence
	uncommitted map[string]string // put since then
	waiting     int               // number of ranks in the fence
	fence       chan struct{}     // closed when all ranks are in the fence
	aborted     chan struct{}     // closed by Abort
	abort       error
}

// A local is the Manager of one rank.
type local struct {
	job  *localJob
	rank int
	sem  chan struct{} // full while this rank is in Fence

	// Under the job's lock.
	pendingFence chan struct{} // fence of a canceled call
	finalized    bool
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

// checkUsable returns an error if the job is aborted or finalized. The caller holds the
// lock.
func (l *local) checkUsable() error {
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
	if err := l.checkUsable(); err != nil {
		return err
	}
	l.job.uncommitted[key] = value
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
	if err := l.checkUsable(); err != nil {
		return "", err
	}
	value, ok := l.job.committed[key]
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
	case l.sem <- struct{}{}:
		defer func() { <-l.sem }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	gate, err := l.enterFence()
	if err != nil {
		return err
	}
	select {
	case <-gate:
	case <-l.job.aborted:
		return l.job.abort
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.job.mu.Lock()
	defer l.job.mu.Unlock()
	l.pendingFence = nil
	return nil
}

// enterFence enters the fence, unless a canceled call already did, and returns its
// channel.
func (l *local) enterFence() (chan struct{}, error) {
	j := l.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := l.checkUsable(); err != nil {
		return nil, err
	}
	if l.pendingFence != nil {
		return l.pendingFence, nil
	}
	l.pendingFence = j.fence
	if j.waiting++; j.waiting == j.size {
		maps.Copy(j.committed, j.uncommitted)
		clear(j.uncommitted)
		close(j.fence)
		j.fence, j.waiting = make(chan struct{}), 0
	}
	return l.pendingFence, nil
}

func (l *local) Abort(code int, cause string) error {
	l.job.mu.Lock()
	defer l.job.mu.Unlock()
	if err := l.checkUsable(); err != nil {
		return err
	}
	l.job.abort = fmt.Errorf("%w: by rank %d with code %d: %s", ErrAborted, l.rank, code, cause)
	close(l.job.aborted)
	return nil
}

func (l *local) Finalize() error {
	l.job.mu.Lock()
	defer l.job.mu.Unlock()
	if err := l.checkUsable(); err != nil {
		return err
	}
	l.finalized = true
	return nil
}

// errGoexit is the error of a rank that called runtime.Goexit, as t.FailNow does.
var errGoexit = errors.New("f called runtime.Goexit")

// maxLocal is the maximum number of ranks of RunLocal: goroutines of one process.
const maxLocal = 1 << 20

// RunLocal calls f as each of n ranks of NewLocal concurrently. The error joins those
// of all ranks. A rank that has not returned grace after the first failure is
// abandoned, and the error names it. It is an error if n is less than 1 or f is nil.
func RunLocal(n int, grace time.Duration, f func(Manager) error) error {
	switch {
	case n < 1 || n > maxLocal:
		return fmt.Errorf("pmi: local job: %d ranks, want 1 to %d", n, maxLocal)
	case f == nil:
		return errors.New("pmi: local job: the function of its ranks is nil")
	}
	type end struct {
		rank int
		err  error
	}
	ends := make(chan end, n)
	waiting := make(map[int]bool, n)
	for i, m := range NewLocal(n) {
		waiting[i] = true
		go func() {
			e := end{i, errGoexit}
			defer func() { ends <- e }()
			e.err = f(m)
		}()
	}
	errs := make([]error, n)
	var timeout <-chan time.Time
	for len(waiting) > 0 {
		select {
		case e := <-ends:
			delete(waiting, e.rank)
			if e.err != nil {
				errs[e.rank] = fmt.Errorf("rank %d: %w", e.rank, e.err)
				if timeout == nil {
					timeout = time.After(grace)
				}
			}
		case <-timeout:
			for i := range waiting {
				errs[i] = fmt.Errorf("rank %d: still running %v after another rank failed", i, grace)
			}
			clear(waiting)
		}
	}
	return errors.Join(errs...)
}
