package rdm

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// An Op is an operation on the memory of a peer. The zero value and a completed
// Op can be started. An Op must not be copied.
type Op struct {
	// DelayAck reports that the completion of a native Write is not urgent.
	// The peer may delay its acknowledgement by some milliseconds, which saves
	// packets. It is set before the operation is started.
	DelayAck bool

	busy atomic.Bool

	p      *Peer
	kind   opKind
	span   Span
	remote Remote
	n      int
	a, b   uint64 // operands: a to compare or to add, b to swap in

	id        uint32
	posted    bool // native: posted to the adapter
	requested bool // emulated: requested completely; a reply is outstanding
	sent      int  // emulated writes: bytes sent
	got       int  // emulated reads: bytes received
	faulty    bool // emulated reads: some bytes could not be stored

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

// isAtomic reports whether operations of the kind are atomics, which have operands
// and no span.
func (k opKind) isAtomic() bool { return k > opWrite }

func (k opKind) String() string {
	return [...]string{"read", "write", "compare-swap", "fetch-add"}[k]
}

// Done reports whether the operation is complete or was never started. It does
// not make progress, see Endpoint.Progress and Wait.
func (o *Op) Done() bool { return !o.busy.Load() }

// Wait makes progress until the operation is complete and returns Err. If ctx
// ends first, Wait returns its error, and the operation remains outstanding.
func (o *Op) Wait(ctx context.Context) error {
	if !o.busy.Load() {
		return o.err
	}
	e := o.p.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.progress.Wait(ctx, (*opWait)(o)); o.busy.Load() {
		return cmp.Or(err, e.err)
	}
	return o.err
}

// opWait is the condition that the operation is complete or the endpoint has
// failed.
type opWait Op

// Ready implements progress.Waitable.
func (o *opWait) Ready() bool { return !o.busy.Load() || o.p.e.err != nil }

// Err returns nil if the operation succeeded, and otherwise an *OpError. The
// operation must be complete.
func (o *Op) Err() error { return o.err }

// Old returns the original value of an atomic in the peer's byte order, which
// equals the local one.
func (o *Op) Old() uint64 { return o.old }

// Read reads the peer's memory into a span. The span must not be used until the
// operation is complete; this also holds for Write.
func (p *Peer) Read(op *Op, to Span, from Remote) error {
	return p.startOp(op, opRead, to, from, to.n, 0, 0)
}

// Write writes a span to the peer's memory.
func (p *Peer) Write(op *Op, from Span, to Remote) error {
	return p.startOp(op, opWrite, from, to, from.n, 0, 0)
}

// CompareSwap stores new in 8 bytes of the peer's memory, at a multiple of 8,
// if they equal old. Op.Old is the original value. It is atomic with respect to
// all operations, and to sync/atomic at the peer.
func (p *Peer) CompareSwap(op *Op, at Remote, old, new uint64) error {
	return p.startOp(op, opCompareSwap, Span{}, at, 8, old, new)
}

// FetchAdd adds add to 8 bytes of the peer's memory, under the conditions of
// CompareSwap.
func (p *Peer) FetchAdd(op *Op, at Remote, add uint64) error {
	return p.startOp(op, opFetchAdd, Span{}, at, 8, add, 0)
}

// startOp starts an operation. It returns local errors immediately.
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
		return refuse(fmt.Errorf("nil operation: %w", verbs.ErrInvalid))
	case op.busy.Load():
		return refuse(ErrInUse)
	case e.err != nil:
		return refuse(e.err)
	case p.err != nil:
		return refuse(p.err)
	case !kind.isAtomic() && !span.permits(e, local) || int64(n) > maxLength:
		return refuse(ErrLocal)
	case kind.isAtomic() && remote.Addr%8 != 0:
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

// completeOp completes an operation.
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

// An opTable holds the outstanding operations. The number of an operation
// combines a slot and the generation of the slot, so that a late reply finds no
// operation.
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

// lookup returns the operation with a number, or nil.
func (t *opTable) lookup(id uint32) *Op {
	if i := int(uint16(id)); i < len(t.slots) && t.slots[i] != nil && t.slots[i].id == id {
		return t.slots[i]
	}
	return nil
}
