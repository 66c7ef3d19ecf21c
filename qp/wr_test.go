package qp

import (
	"github.com/softrnic/softrnic/verbs"
)

// Work requests of a for b. Offsets are those in the two regions.

func (p *pair) send(id uint64, off, n int) verbs.SendWR {
	return verbs.SendWR{WRID: id, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{p.a.sge(off, n)}}
}

func (p *pair) write(id uint64, local, remote, n int) verbs.SendWR {
	return verbs.SendWR{
		WRID: id, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGList: []verbs.SGE{p.a.sge(local, n)},
		RemoteAddr: p.b.base + uint64(remote), RKey: p.b.key,
	}
}

func (p *pair) writeImm(id uint64, local, remote, n int, imm uint32) verbs.SendWR {
	wr := p.write(id, local, remote, n)
	wr.Opcode, wr.Imm = verbs.WRRDMAWriteWithImm, imm
	return wr
}

func (p *pair) read(id uint64, local, remote, n int) verbs.SendWR {
	wr := p.write(id, local, remote, n)
	wr.Opcode = verbs.WRRDMARead
	return wr
}

func (p *pair) fetchAdd(id uint64, local, remote int, add uint64) verbs.SendWR {
	wr := p.write(id, local, remote, 8)
	wr.Opcode, wr.CompareAdd = verbs.WRAtomicFetchAdd, add
	return wr
}

func (p *pair) cmpSwap(id uint64, local, remote int, compare, swap uint64) verbs.SendWR {
	wr := p.write(id, local, remote, 8)
	wr.Opcode, wr.CompareAdd, wr.Swap = verbs.WRAtomicCmpSwap, compare, swap
	return wr
}

func (p *pair) atomicWrite(id uint64, local, remote int) verbs.SendWR {
	wr := p.write(id, local, remote, 8)
	wr.Opcode = verbs.WRAtomicWrite
	return wr
}

func (p *pair) flush(id uint64, remote, n int) verbs.SendWR {
	wr := p.write(id, 0, remote, 0)
	wr.Opcode, wr.SGList, wr.Flush = verbs.WRFlush, nil, verbs.Flush{Placement: verbs.FlushGlobal, Length: uint32(n)}
	return wr
}

// withInv makes a SEND invalidate a key.
func withInv(wr verbs.SendWR, key uint32) verbs.SendWR {
	wr.Opcode, wr.InvKey = verbs.WRSendWithInv, key
	return wr
}

// withFlags adds flags to a request, and unsignaled removes the completion.
func withFlags(wr verbs.SendWR, f verbs.SendFlags) verbs.SendWR {
	wr.Flags |= f
	return wr
}

func unsignaled(wr verbs.SendWR) verbs.SendWR {
	wr.Flags &^= verbs.SendSignaled
	return wr
}

// post returns a function that posts a request that has been started and sent.
func (c *Core) post(w sendWQE) {
	*c.sq.wqeAt(c.sq.push(false)) = w
	c.cur = c.sq.tail
	c.una = w.first
	c.next = w.last.Add(1)
	c.top = c.next
}
