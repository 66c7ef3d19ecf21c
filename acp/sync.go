package acp

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// barrier is Sync under way. In round k a rank puts the number of the call to the rank 2^k
// further on, and waits for that of the rank 2^k before it: after the last round it has heard of all
// (dissemination). Numbers only grow, so a flag that is ahead is as good.
type barrier struct {
	calls uint64 // that have come to their end
	busy  bool
	round bool // waits for a flag
	from  int  // of this rank
	puts  int  // under way
	err   error
}

// Sync returns when all ranks have called it (acp_sync). Operations are not waited for: what others shall
// see of them is to be completed before. If ctx ends first, the next call goes on with the same.
func (p *Process) Sync(ctx context.Context) error {
	if p.isNull() {
		return p.wrong("sync", "", ErrNull)
	}
	p.mu.Lock()
	defer p.unlock()
	b := &p.barrier
	switch {
	case p.closed:
		return p.wrong("sync", "", ErrClosed)
	case b.busy:
		return p.wrong("sync", "", fmt.Errorf("%w: another goroutine is in it", ErrBusy))
	}
	b.busy, b.err = true, nil
	err := p.disseminate(ctx)
	b.busy, b.round = false, false
	if err != nil {
		return p.wrong("sync", "", err)
	}
	b.calls++
	return nil
}

func (p *Process) disseminate(ctx context.Context) error {
	b := &p.barrier
	for k, far := 0, 1; far < p.size; k, far = k+1, 2*far {
		to := (p.rank + far) % p.size
		b.from = (p.rank + p.size - far) % p.size
		b.puts++
		p.start(p.putWord(protocol.Make(to, starterRegion, flagsOffset+8*uint64(k)), b.calls+1, b))
		p.flush()
		b.round = true
		if err := p.wait(ctx, flag{p, flagsOffset + 8*k}); err != nil {
			return fmt.Errorf("waiting for rank %d: %w", b.from, err)
		}
		if b.err != nil {
			return b.err
		}
	}
	b.round = false
	if err := p.wait(ctx, quiet{p}); err != nil {
		return err
	}
	return b.err
}

// accessed implements accessOwner.
func (b *barrier) accessed(_ *access, err error) {
	b.puts--
	if b.err == nil {
		b.err = err
	}
}

// flag is ready when the rank before us has come.
type flag struct {
	p   *Process
	off int
}

func (f flag) ready() bool {
	b := &f.p.barrier
	if f.p.memory.starter.LoadUint64(f.off) > b.calls {
		return true
	}
	if r := f.p.peers[b.from]; b.err == nil && r != nil {
		b.err = r.why
	}
	if b.err == nil && f.p.closed {
		b.err = ErrClosed
	}
	return b.err != nil
}

// quiet is ready when all puts of the barrier are done.
type quiet struct{ p *Process }

func (q quiet) ready() bool { return q.p.barrier.puts == 0 || q.p.closed }
