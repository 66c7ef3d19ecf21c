package acp

import (
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// The atomic operations act on 8 or 4 aligned bytes at a global address of any rank (acp_cas8, ...). They
// start when the operations up to after are complete. The previous value is stored in *old, unless old is
// nil, when the operation is complete.
//
// All operations are atomic with each other, whatever their kind, width and rank, and with sync/atomic in the
// program that owns the memory: the owner's adapter executes them on the 8-byte word that contains the value,
// by fetch-and-add or a loop of compare-and-swap. A compare-and-swap that fails because the word has changed
// is retried.

// CompareSwap8 stores value if the word equals compare.
func (p *Process) CompareSwap8(old *uint64, at GA, compare, value uint64, after Handle) Handle {
	return p.issueAtomic(&atomicOp{old8: old, at: at, m: protocol.Modify{Op: protocol.CompareSwap, Compare: compare, Operand: value}}, after)
}

// Swap8 stores value.
func (p *Process) Swap8(old *uint64, at GA, value uint64, after Handle) Handle {
	return p.issueAtomic(&atomicOp{old8: old, at: at, m: protocol.Modify{Op: protocol.Swap, Operand: value}}, after)
}

// Add8 adds value.
func (p *Process) Add8(old *uint64, at GA, value uint64, after Handle) Handle {
	return p.issueAtomic(&atomicOp{old8: old, at: at, m: protocol.Modify{Op: protocol.Add, Operand: value}}, after)
}

// Xor8 stores the exclusive or with value.
func (p *Process) Xor8(old *uint64, at GA, value uint64, after Handle) Handle {
	return p.issueAtomic(&atomicOp{old8: old, at: at, m: protocol.Modify{Op: protocol.Xor, Operand: value}}, after)
}

// Or8 stores the bitwise or with value.
func (p *Process) Or8(old *uint64, at GA, value uint64, after Handle) Handle {
	return p.issueAtomic(&atomicOp{old8: old, at: at, m: protocol.Modify{Op: protocol.Or, Operand: value}}, after)
}

// And8 stores the bitwise and with value.
func (p *Process) And8(old *uint64, at GA, value uint64, after Handle) Handle {
	return p.issueAtomic(&atomicOp{old8: old, at: at, m: protocol.Modify{Op: protocol.And, Operand: value}}, after)
}

// CompareSwap4 is CompareSwap8 for 4 bytes.
func (p *Process) CompareSwap4(old *uint32, at GA, compare, value uint32, after Handle) Handle {
	return p.issueAtomic(&atomicOp{old4: old, half: true, at: at, m: protocol.Modify{Op: protocol.CompareSwap, Compare: uint64(compare), Operand: uint64(value)}}, after)
}

// Swap4 is Swap8 for 4 bytes.
func (p *Process) Swap4(old *uint32, at GA, value uint32, after Handle) Handle {
	return p.issueAtomic(&atomicOp{old4: old, half: true, at: at, m: protocol.Modify{Op: protocol.Swap, Operand: uint64(value)}}, after)
}

// Add4 is Add8 for 4 bytes.
func (p *Process) Add4(old *uint32, at GA, value uint32, after Handle) Handle {
	return p.issueAtomic(&atomicOp{old4: old, half: true, at: at, m: protocol.Modify{Op: protocol.Add, Operand: uint64(value)}}, after)
}

// Xor4 is Xor8 for 4 bytes.
func (p *Process) Xor4(old *uint32, at GA, value uint32, after Handle) Handle {
	return p.issueAtomic(&atomicOp{old4: old, half: true, at: at, m: protocol.Modify{Op: protocol.Xor, Operand: uint64(value)}}, after)
}

// Or4 is Or8 for 4 bytes.
func (p *Process) Or4(old *uint32, at GA, value uint32, after Handle) Handle {
	return p.issueAtomic(&atomicOp{old4: old, half: true, at: at, m: protocol.Modify{Op: protocol.Or, Operand: uint64(value)}}, after)
}

// And4 is And8 for 4 bytes.
func (p *Process) And4(old *uint32, at GA, value uint32, after Handle) Handle {
	return p.issueAtomic(&atomicOp{old4: old, half: true, at: at, m: protocol.Modify{Op: protocol.And, Operand: uint64(value)}}, after)
}

func (p *Process) issueAtomic(t *atomicOp, after Handle) Handle {
	if p.isNull() {
		return None
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	p.noteActivity()
	return p.issueOp(t, after, -1)
}

// atomicOp is the task of an atomic operation.
type atomicOp struct {
	at   GA
	half bool
	old8 *uint64
	old4 *uint32
	m    protocol.Modify
	o    *operation
}

func (t *atomicOp) opName() string   { return t.m.Op.String() + fmt.Sprint(t.width()) }
func (t *atomicOp) opTarget() string { return "at " + t.at.String() }

func (t *atomicOp) width() int {
	if t.half {
		return 4
	}
	return 8
}

func (t *atomicOp) startTask(o *operation) {
	t.o = o
	err := o.p.checkRange(t.at, t.width())
	if err == nil && t.at.Offset()%uint64(t.width()) != 0 {
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
