package acp

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/softrnic/softrnic/acp/internal/fabric"
)

// flushPosted executes the pending accesses to memory of this rank, and posts those to other ranks.
func (p *Process) flushPosted() {
	for a := p.localOps.pop(); a != nil; a = p.localOps.pop() {
		p.finishAccess(a, p.runLocal(a))
	}
	p.net.Flush()
}

// runLocal executes an access to memory of this rank by the processor. The adapter's atomics are atomic with
// the processor's (verbs.AtomicGlob).
func (p *Process) runLocal(a *access) error {
	r, err := p.memory.findRegion(p, a.ga, a.n)
	if err != nil {
		return err
	}
	if a.Kind >= fabric.CompareSwap && (r.mr.Addr()+a.ga.Offset())%8 != 0 {
		return ErrAlign
	}
	mem := r.mr.Bytes()[a.ga.Offset():][:a.n]
	switch {
	case a.Kind == fabric.Get:
		copy(a.Mem.Bytes()[a.Off:a.Off+a.N], mem)
	case a.Kind == fabric.Put && a.Mem != nil:
		copy(mem, a.Mem.Bytes()[a.Off:a.Off+a.N])
	case a.Kind == fabric.Put:
		for len(mem) >= 8 { // word by word: a goroutine may poll them
			atomic.StoreUint64(wordPtr(mem, 0), binary.NativeEndian.Uint64(a.Inline))
			mem, a.Inline = mem[8:], a.Inline[8:]
		}
		copy(mem, a.Inline)
	case a.Kind == fabric.FetchAdd:
		a.Old = atomic.AddUint64(wordPtr(mem, 0), a.Operand) - a.Operand
	default:
		a.Old = a.Compare
		for !atomic.CompareAndSwapUint64(wordPtr(mem, 0), a.Compare, a.Operand) {
			if a.Old = atomic.LoadUint64(wordPtr(mem, 0)); a.Old != a.Compare {
				break
			}
		}
	}
	if a.Signal {
		p.handleSignal(p.rank, a.Imm)
	}
	return nil
}
