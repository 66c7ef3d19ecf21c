package rdm

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// Op is an operation on memory of a peer. The zero value is ready to be started, and
// so is one that is complete. It must not be copied.
type Op struct {
	// Unhurried says of a native Write that nobody will wait for it soon. The peer may
	// keep its acknowledgement for some milliseconds, and has less to send. It is set
	// before the operation is started.
	Unhurried bool

	busy atomic.Bool

	p      *Peer
	kind   opKind
	span   Span
	remote Remote
	n      int
	a, b   uint64 // operands

	id        uint32
	posted    bool // native: the adapter has it
	requested bool // emulated: all of it has been said, and the peer has to answer
	sent      int  // emulated writes: bytes that have left
	got       int  // emulated reads: bytes that have come
	faulty    bool // emulated reads: some of them could not be stored

	err error
	old uint64
}

type opKind uint8

const (
	opRead opKind = iota
	opWrite
	opCompareSwap
	opFetchAdd
)

func (k opKind) String() string {
	return [...]string{"read", "write", "compare-swap", "fetch-add"}[k]
}

// Done reports whether the operation is complete, or was never started. It does not
// serve the network: Progress and Wait do.
func (o *Op) Done() bool { return !o.busy.Load() }

// Wait serves the network until the operation is complete and returns Err, or the
// context's error: then it is still under way.
func (o *Op) Wait(ctx context.Context) error {
	if o.busy.Load() {
		e := o.p.e
		e.mu.Lock()
		err := e.waitUntil(ctx, o.Done)
		e.mu.Unlock()
		if o.busy.Load() {
			return err
		}
	}
	return o.err
}

// Err is nil of an operation that has been carried out, and otherwise an *OpError,
// of which errors.Is tells the reason. It is for operations that are complete.
func (o *Op) Err() error { return o.err }

// Old is what an atomic has found, in the peer's byte order, which is ours.
func (o *Op) Old() uint64 { return o.old }

// Read reads the peer's memory into that of a span. The span is the operation's
// until it is complete, as that of Write.
func (p *Peer) Read(op *Op, to Span, from Remote) error {
	return p.startOp(op, opRead, to, from, to.n, 0, 0)
}

// Write writes the memory of a span to the peer's.
func (p *Peer) Write(op *Op, from Span, to Remote) error {
	return p.startOp(op, opWrite, from, to, from.n, 0, 0)
}

// CompareSwap stores new in 8 bytes of the peer's memory, at a multiple of 8, if they
// are old; Op.Old is what they were. It is atomic with respect to all operations,
// and to sync/atomic there.
func (p *Peer) CompareSwap(op *Op, at Remote, old, new uint64) error {
	return p.startOp(op, opCompareSwap, Span{}, at, 8, old, new)
}

// FetchAdd adds to 8 bytes of the peer's memory, in the same manner.
func (p *Peer) FetchAdd(op *Op, at Remote, add uint64) error {
	return p.startOp(op, opFetchAdd, Span{}, at, 8, add, 0)
}

// startOp starts an operation. What is wrong at this end is an error at once.
func (p *Peer) startOp(op *Op, kind opKind, span Span, remote Remote, n int, a, b uint64) error {
	e := p.e
	e.mu.Lock()
	defer e.mu.Unlock()
	refuse := func(err error) error {
		return &OpError{Op: kind.String(), Peer: p.at, Remote: remote, N: n, Err: err}
	}
	local := verbs.AccessFlags(0)
	if kind == opRead {
		local = verbs.AccessLocalWrite
	}
	switch {
	case op == nil:
		return refuse(fmt.Errorf("the operation is nil: %w", verbs.ErrInvalid))
	case op.busy.Load():
		return refuse(ErrInUse)
	case e.err != nil:
		return refuse(e.err)
	case p.err != nil:
		return refuse(p.err)
	case kind <= opWrite && !span.permits(e, local) || int64(n) > maxLength:
		return refuse(ErrLocal)
	case kind > opWrite && remote.Addr%8 != 0:
		return refuse(ErrAlign)
	case !e.ops.alloc(op):
		return refuse(ErrBusy)
	}
	op.p, op.kind, op.span, op.remote, op.n, op.a, op.b = p, kind, span, remote, n, a, b
	op.posted, op.requested, op.faulty, op.sent, op.got, op.err, op.old = false, false, false, 0, 0, nil, 0
	op.busy.Store(true)
	if span.r != nil {
		span.r.busy++
	}
	s := p.ensureRDMA()
	s.outstanding++
	s.queue.Push(op)
	e.flushPending(p)
	e.flush()
	return nil
}

// completeOp ends an operation.
func (e *Endpoint) completeOp(op *Op, err error) {
	e.ops.release(op)
	if op.span.r != nil {
		op.span.r.busy--
	}
	if err != nil {
		op.err = &OpError{Op: op.kind.String(), Peer: op.p.at, Remote: op.remote, N: op.n, Err: err}
	}
	op.p.rdmaState.outstanding--
	op.busy.Store(false)
	e.changed = true
}

const (
	maxOps    = 1 << 15
	maxLength = 1 << 31 // bytes of an operation
)

// opTable are the operations under way. The number of one is a place and how often that
// has been used, so that a late answer finds nobody.
type opTable struct {
	slots      []*Op
	generation []uint16
	free       []uint16
}

func (t *opTable) init(n int) {
	t.slots, t.generation, t.free = make([]*Op, n), make([]uint16, n), make([]uint16, n)
	for i := range t.free {
		t.free[i] = uint16(n - 1 - i)
	}
}

func (t *opTable) alloc(op *Op) bool {
	n := len(t.free)
	if n == 0 {
		return false
	}
	i := t.free[n-1]
	t.free = t.free[:n-1]
	t.generation[i]++
	t.slots[i], op.id = op, uint32(t.generation[i])<<16|uint32(i)
	return true
}

func (t *opTable) release(op *Op) {
	i := uint16(op.id)
	t.slots[i] = nil
	t.free = append(t.free, i)
}

// lookup returns the operation with a number, nil if there is none.
func (t *opTable) lookup(id uint32) *Op {
	if i := int(uint16(id)); i < len(t.slots) && t.slots[i] != nil && t.slots[i].id == id {
		return t.slots[i]
	}
	return nil
}
