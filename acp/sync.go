package acp

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// barrier is the state of Sync, a dissemination barrier. In round k a rank writes the number of the call to
// the rank 2^k further on, and waits for the flag from the rank 2^k before it. Numbers only grow, so a flag
// of a later call counts as well.
type barrier struct {
	completed   uint64 // number of completed calls
	inProgress  bool
	waiting     bool // waits for a flag
	source      int  // the rank whose flag is awaited
	flag        int  // offset of that flag in the starter memory
	outstanding int  // incomplete puts
	err         error
}

// Sync blocks until all ranks have called it (acp_sync). It does not wait for operations: complete those that
// the other ranks must see before the call. If ctx ends first, the next call resumes the same barrier.
func (p *Process) Sync(ctx context.Context) error {
	if p.isNull() {
		return p.newError("sync", "", ErrNull)
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	b := &p.barrier
	switch {
	case p.closed:
		return p.newError("sync", "", ErrClosed)
	case b.inProgress:
		return p.newError("sync", "", fmt.Errorf("%w: concurrent Sync", ErrBusy))
	}
	b.inProgress, b.err = true, nil
	defer func() { b.inProgress, b.waiting = false, false }() // also if a method of the program's context panics
	if err := p.runDissemination(ctx); err != nil {
		return p.newError("sync", "", err)
	}
	b.completed++
	return nil
}

// runDissemination executes the rounds of the barrier. p.mu must be held.
func (p *Process) runDissemination(ctx context.Context) error {
	b := &p.barrier
	for k, far := 0, 1; far < p.size; k, far = k+1, 2*far {
		to := (p.rank + far) % p.size
		b.source = (p.rank + p.size - far) % p.size
		b.outstanding++
		p.startAccess(p.newWordPut(protocol.Make(to, starterRegion, flagsOffset+8*uint64(k)), b.completed+1, b))
		p.flushPosted()
		b.waiting, b.flag = true, flagsOffset+8*k
		if err := p.waitFor(ctx, flagCond{p}); err != nil {
			return fmt.Errorf("wait for rank %d: %w", b.source, err)
		}
		if b.err != nil {
			return b.err
		}
	}
	b.waiting = false
	if err := p.waitFor(ctx, putsCond{p}); err != nil {
		return err
	}
	return b.err
}

// onAccessDone implements accessOwner.
func (b *barrier) onAccessDone(_ *access, err error) {
	b.outstanding--
	if b.err == nil {
		b.err = err
	}
}

// flagCond is ready when the flag of the previous rank has arrived, or the barrier has failed.
type flagCond struct{ p *Process }

func (c flagCond) Ready() bool {
	b := &c.p.barrier
	if c.p.memory.starter.LoadUint64(b.flag) > b.completed {
		return true
	}
	if r := c.p.peers[b.source]; b.err == nil && r != nil {
		b.err = r.lostErr
	}
	if b.err == nil && c.p.closed {
		b.err = ErrClosed
	}
	return b.err != nil
}

// putsCond is ready when all puts of the barrier are complete.
type putsCond struct{ p *Process }

func (c putsCond) Ready() bool { return c.p.barrier.outstanding == 0 || c.p.closed }
