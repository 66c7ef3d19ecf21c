package acp

import (
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// Atomic operations on 8 or 4 bytes at a global address of any rank, a multiple of as many
// (acp_cas8 and its like). They begin when the operations up to after are complete. What was there before goes to
// old, which may be nil, and is there when the operation is complete.
//
// All of them are atomic with each other, whatever operation, width and rank, and with sync/atomic in the
// program whose memory it is: they are done on the word of 8 bytes that contains the value, by compare-and-swap,
// or by fetch-and-add where that is it, of the adapter that owns it. Others that change the word meanwhile make a
// compare-and-swap fail, and it is tried again.

// CompareSwap8 stores value if there is compare.
func (p *Process) CompareSwap8(old *uint64, at GA, compare, value uint64, after Handle) Handle {
	return p.modify(&modifying{old8: old, at: at, m: protocol.Modify{Op: protocol.CompareSwap, Compare: compare, Operand: value}}, after)
}

// Swap8 stores value.
func (p *Process) Swap8(old *uint64, at GA, value uint64, after Handle) Handle {
	return p.modify(&modifying{old8: old, at: at, m: protocol.Modify{Op: protocol.Swap, Operand: value}}, after)
}

// Add8 adds value.
func (p *Process) Add8(old *uint64, at GA, value uint64, after Handle) Handle {
	return p.modify(&modifying{old8: old, at: at, m: protocol.Modify{Op: protocol.Add, Operand: value}}, after)
}

// Xor8 combines with value by exclusive or.
func (p *Process) Xor8(old *uint64, at GA, value uint64, after Handle) Handle {
	return p.modify(&modifying{old8: old, at: at, m: protocol.Modify{Op: protocol.Xor, Operand: value}}, after)
}

// Or8 combines with value by or.
func (p *Process) Or8(old *uint64, at GA, value uint64, after Handle) Handle {
	return p.modify(&modifying{old8: old, at: at, m: protocol.Modify{Op: protocol.Or, Operand: value}}, after)
}

// And8 combines with value by and.
func (p *Process) And8(old *uint64, at GA, value uint64, after Handle) Handle {
	return p.modify(&modifying{old8: old, at: at, m: protocol.Modify{Op: protocol.And, Operand: value}}, after)
}

// CompareSwap4 is CompareSwap8 of 4 bytes.
func (p *Process) CompareSwap4(old *uint32, at GA, compare, value uint32, after Handle) Handle {
	return p.modify(&modifying{old4: old, half: true, at: at, m: protocol.Modify{Op: protocol.CompareSwap, Compare: uint64(compare), Operand: uint64(value)}}, after)
}

// Swap4 is Swap8 of 4 bytes.
func (p *Process) Swap4(old *uint32, at GA, value uint32, after Handle) Handle {
	return p.modify(&modifying{old4: old, half: true, at: at, m: protocol.Modify{Op: protocol.Swap, Operand: uint64(value)}}, after)
}

// Add4 is Add8 of 4 bytes.
func (p *Process) Add4(old *uint32, at GA, value uint32, after Handle) Handle {
	return p.modify(&modifying{old4: old, half: true, at: at, m: protocol.Modify{Op: protocol.Add, Operand: uint64(value)}}, after)
}

// Xor4 is Xor8 of 4 bytes.
func (p *Process) Xor4(old *uint32, at GA, value uint32, after Handle) Handle {
	return p.modify(&modifying{old4: old, half: true, at: at, m: protocol.Modify{Op: protocol.Xor, Operand: uint64(value)}}, after)
}

// Or4 is Or8 of 4 bytes.
func (p *Process) Or4(old *uint32, at GA, value uint32, after Handle) Handle {
	return p.modify(&modifying{old4: old, half: true, at: at, m: protocol.Modify{Op: protocol.Or, Operand: uint64(value)}}, after)
}

// And4 is And8 of 4 bytes.
func (p *Process) And4(old *uint32, at GA, value uint32, after Handle) Handle {
	return p.modify(&modifying{old4: old, half: true, at: at, m: protocol.Modify{Op: protocol.And, Operand: uint64(value)}}, after)
}

func (p *Process) modify(t *modifying, after Handle) Handle {
	if p.isNull() {
		return None
	}
	p.mu.Lock()
	defer p.unlock()
	p.visit()
	return p.issue(t, after, -1)
}

// modifying is the task of an atomic operation.
type modifying struct {
	at   GA
	half bool
	old8 *uint64
	old4 *uint32
	m    protocol.Modify
	o    *operation
}

func (t *modifying) name() string { return t.m.Op.String() + fmt.Sprint(t.size()) }
func (t *modifying) what() string { return "at " + t.at.String() }

func (t *modifying) size() int {
	if t.half {
		return 4
	}
	return 8
}

func (t *modifying) begin(o *operation) {
	t.o = o
	err := o.p.valid(t.at, t.size())
	if err == nil && t.at.Offset()%uint64(t.size()) != 0 {
		err = ErrAlign
	}
	if err != nil {
		o.finish(err)
		return
	}
	if t.half {
		t.m.Half(t.at.Offset(), bigEndian)
	}
	if t.m.Native() {
		t.try()
		return
	}
	line := o.p.lines[t.at&^7]
	o.p.lines[t.at&^7] = append(line, t)
	if len(line) == 0 {
		t.try()
	}
}

// try does a round of the loop.
func (t *modifying) try() {
	a := t.o.p.newAccess(t.at&^7, 8, t)
	if a.Kind = fabric.FetchAdd; t.m.Native() {
		a.Operand = t.m.Operand
	} else {
		a.Kind = fabric.CompareSwap
		a.Compare, a.Operand = t.m.Next()
	}
	t.o.p.start(a)
}

// accessed implements accessOwner.
func (t *modifying) accessed(a *access, err error) {
	if err == nil && !t.m.Native() && !t.m.Found(a.Old) {
		t.try()
		return
	}
	found := a.Old
	switch {
	case err != nil:
	case t.old8 != nil:
		*t.old8 = found
	case t.old4 != nil:
		*t.old4 = uint32(t.m.Old(found))
	}
	if !t.m.Native() {
		t.leave(found)
	}
	t.o.finish(err)
}

// Loops of this rank on one word stand in line: they would only make each other fail. Who is next knows what
// the one before it has left there.

// leave ends a turn.
func (t *modifying) leave(found uint64) {
	lines, word := t.o.p.lines, t.at&^7
	line := lines[word][1:]
	if len(line) == 0 {
		delete(lines, word)
		return
	}
	lines[word] = line
	line[0].m.Guess(t.m.Apply(found))
	line[0].try()
}
