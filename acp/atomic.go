package acp

import (
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// Word is the type of an atomic operation: 4 or 8 bytes.
type Word interface{ uint32 | uint64 }

// The atomic operations act on 8 or 4 aligned bytes at a global address of any rank (acp_cas8, ...). They
// start when the operations up to after are complete. The previous value is stored in *old, unless old is
// nil, when the operation is complete. For a null Process they return None.
//
// All operations are atomic with each other, whatever their kind, width and rank, and with sync/atomic in the
// program that owns the memory: the owner's adapter executes them on the 8-byte word that contains the value,
// by fetch-and-add or a loop of compare-and-swap. A compare-and-swap that fails because the word has changed
// is retried.

// CompareSwap stores value if the word equals compare.
func CompareSwap[T Word](p *Process, old *T, at GA, compare, value T, after Handle) Handle {
	return issueAtomic(p, protocol.CompareSwap, old, at, compare, value, after)
}

// Swap stores value.
func Swap[T Word](p *Process, old *T, at GA, value T, after Handle) Handle {
	return issueAtomic(p, protocol.Swap, old, at, 0, value, after)
}

// FetchAdd adds value.
func FetchAdd[T Word](p *Process, old *T, at GA, value T, after Handle) Handle {
	return issueAtomic(p, protocol.Add, old, at, 0, value, after)
}

// FetchXor stores the exclusive or with value.
func FetchXor[T Word](p *Process, old *T, at GA, value T, after Handle) Handle {
	return issueAtomic(p, protocol.Xor, old, at, 0, value, after)
}

// FetchOr stores the bitwise or with value.
func FetchOr[T Word](p *Process, old *T, at GA, value T, after Handle) Handle {
	return issueAtomic(p, protocol.Or, old, at, 0, value, after)
}

// FetchAnd stores the bitwise and with value.
func FetchAnd[T Word](p *Process, old *T, at GA, value T, after Handle) Handle {
	return issueAtomic(p, protocol.And, old, at, 0, value, after)
}

func issueAtomic[T Word](p *Process, op protocol.AtomicOp, old *T, at GA, compare, value T, after Handle) Handle {
	if p.isNull() {
		return None
	}
	t := &atomicOp{at: protocol.GA(at), m: protocol.Modify{Op: op, Compare: uint64(compare), Operand: uint64(value)}}
	switch old := any(old).(type) {
	case *uint64:
		t.old8 = old
	case *uint32:
		t.old4, t.half = old, true
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	return p.issueOp(t, after, -1)
}

// atomicOp is the task of an atomic operation.
type atomicOp struct {
	at   protocol.GA
	half bool
	old8 *uint64
	old4 *uint32
	m    protocol.Modify
	o    *operation
}

func (t *atomicOp) opName() string   { return t.m.Op.String() + fmt.Sprint(t.widthBytes()) }
func (t *atomicOp) opTarget() string { return "at " + t.at.String() }

func (t *atomicOp) widthBytes() int {
	if t.half {
		return 4
	}
	return 8
}

// startTask implements task. The caller holds Process.mu.
func (t *atomicOp) startTask(o *operation) {
	t.o = o
	err := o.p.checkRange(t.at, t.widthBytes())
	if err == nil && t.at.Offset()%uint64(t.widthBytes()) != 0 {
		err = ErrAlign
	}
	if err != nil {
		o.finishOp(err)
		return
	}
	if t.half {
		t.m.SetWidth4(t.at.Offset(), bigEndian)
	}
	if t.m.IsNative() {
		t.tryOnce()
		return
	}
	line := o.p.modifyQueues[t.at&^7]
	o.p.modifyQueues[t.at&^7] = append(line, t)
	if len(line) == 0 {
		t.tryOnce()
	}
}

// tryOnce starts one iteration of the loop.
func (t *atomicOp) tryOnce() {
	a := t.o.p.newAccess(t.at&^7, 8, t)
	if a.Kind = fabric.FetchAdd; t.m.IsNative() {
		a.Operand = t.m.Operand
	} else {
		a.Kind = fabric.CompareSwap
		a.Compare, a.Operand = t.m.NextSwap()
	}
	t.o.p.startAccess(a)
}

// onAccessDone implements accessOwner.
func (t *atomicOp) onAccessDone(a *access, err error) {
	if err == nil && !t.m.IsNative() && !t.m.HandleResult(a.Old) {
		t.tryOnce()
		return
	}
	found := a.Old
	switch {
	case err != nil:
	case t.old8 != nil:
		*t.old8 = found
	case t.old4 != nil:
		*t.old4 = uint32(t.m.OldValue(found))
	}
	if !t.m.IsNative() {
		t.startNextInLine(found)
	}
	t.o.finishOp(err)
}

// Compare-and-swap loops of this rank on the same word would make each other fail, so they run one after the
// other. Each starts with the value that its predecessor stored.

// startNextInLine removes t from the queue of its word, and starts the next operation there.
func (t *atomicOp) startNextInLine(found uint64) {
	lines, word := t.o.p.modifyQueues, t.at&^7
	line := lines[word][1:]
	if len(line) == 0 {
		delete(lines, word)
		return
	}
	lines[word] = line
	line[0].m.SetGuess(t.m.ApplyTo(found))
	line[0].tryOnce()
}
