package acp

import (
	"encoding/binary"
	"errors"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// access is one operation on memory of any rank, addressed by its global address.
type access struct {
	fabric.Op
	p        *Process
	ga       protocol.GA // if resolved is set, only its rank is valid: Addr and RKey are set
	n        int         // bytes at ga
	local    *Region
	owner    accessOwner
	retried  bool // the target has refused it once
	resolved bool
	request  *Request        // of a channel: the send whose buffer is read
	words    [maxInline]byte // backing array of Inline
	next     *access
}

// accessOwner is notified when an access completes, with Process.mu held. The access is recycled when
// onAccessDone returns.
type accessOwner interface{ onAccessDone(a *access, err error) }

// maxInline is the maximum length in bytes of data that is sent inline in a work request.
const maxInline = fabric.InlineMax

// newAccess returns an access to n bytes at ga, for the caller to fill in and start.
func (p *Process) newAccess(ga protocol.GA, n int, owner accessOwner) *access {
	a := p.freeAccesses
	if a == nil {
		a = &access{p: p}
	} else {
		p.freeAccesses, a.next = a.next, nil
	}
	a.ga, a.n, a.owner = ga, n, owner
	a.Owner = a
	return a
}

// setLocal makes n bytes at offset off of r the local buffer of a.
func (a *access) setLocal(r *Region, off, n int) {
	a.Mem, a.Off, a.N, a.local = r.mr, off, n, r
	r.uses++
}

// newPut returns a put of n bytes from a local region.
func (p *Process) newPut(to protocol.GA, from *Region, off, n int, owner accessOwner) *access {
	a := p.newAccess(to, n, owner)
	a.Kind = fabric.Put
	a.setLocal(from, off, n)
	return a
}

// newGet returns a get of n bytes into a local region.
func (p *Process) newGet(into *Region, off int, from protocol.GA, n int, owner accessOwner) *access {
	a := p.newAccess(from, n, owner)
	a.Kind = fabric.Get
	a.setLocal(into, off, n)
	return a
}

// newWordPut returns an inline put of one word.
func (p *Process) newWordPut(to protocol.GA, w uint64, owner accessOwner) *access {
	a := p.newAccess(to, 8, owner)
	a.Kind, a.Inline = fabric.Put, binary.NativeEndian.AppendUint64(a.words[:0], w)
	return a
}

// newTwoWordPut returns an inline put of two words, the second of which becomes visible last.
func (p *Process) newTwoWordPut(to protocol.GA, w [2]uint64, owner accessOwner) *access {
	a := p.newWordPut(to, w[0], owner)
	a.n, a.Inline = 16, binary.NativeEndian.AppendUint64(a.Inline, w[1])
	return a
}

// startAccess posts a, or queues it until the peer is connected and the directory entry of the region is
// known. p.mu must be held.
func (p *Process) startAccess(a *access) {
	rank := a.ga.Rank()
	switch {
	case rank == p.rank:
		p.localOps.push(a)
		return
	case rank >= p.size:
		p.finishAccess(a, ErrRank)
		return
	}
	r := p.peerFor(rank)
	switch {
	case r.lostErr != nil:
		p.finishAccess(a, r.lostErr)
		return
	case !r.connected:
		r.pending.push(a)
		return
	case a.resolved:
		p.net.Post(rank, &a.Op)
		return
	}
	number := uint16(a.ga.Region())
	e := r.entries[number]
	if e == nil {
		if number == 0 {
			p.finishAccess(a, ErrRegion)
			return
		}
		e = p.lookUpEntry(r, number)
		if r.entries[number] == nil { // the lookup failed at once
			p.finishAccess(a, ErrRegion)
			return
		}
	}
	switch {
	case !e.valid:
		e.pending.push(a)
	case !e.ContainsRange(a.ga.Offset(), uint64(a.n)):
		p.finishAccess(a, ErrRange)
	default:
		a.Addr, a.RKey = e.Addr+a.ga.Offset(), e.RKey
		if a.Kind >= fabric.CompareSwap && a.Addr%8 != 0 {
			p.finishAccess(a, ErrAlign)
			return
		}
		p.net.Post(rank, &a.Op)
	}
}

// OpDone implements fabric.Owner. If the target refuses the cached key, the region number may have been
// reused: OpDone reads the directory entry again and retries once.
func (a *access) OpDone(_ *fabric.Op, err error) {
	if errors.Is(err, fabric.ErrAccess) && !a.retried && !a.resolved {
		r := a.p.peerFor(a.ga.Rank())
		if number := uint16(a.ga.Region()); r.entries[number] != nil && r.entries[number].valid && r.entries[number].RKey == a.RKey {
			delete(r.entries, number)
		}
		a.retried = true
		a.p.startAccess(a)
		return
	}
	a.p.finishAccess(a, err)
}

// finishAccess notifies the owner and recycles a.
func (p *Process) finishAccess(a *access, err error) {
	if a.local != nil {
		a.local.uses--
	}
	a.owner.onAccessDone(a, err)
	*a = access{p: p, next: p.freeAccesses}
	p.freeAccesses = a
}

// accessList is a FIFO queue of accesses.
type accessList struct{ first, last *access }

func (l *accessList) push(a *access) {
	a.next = nil
	if l.first == nil {
		l.first = a
	} else {
		l.last.next = a
	}
	l.last = a
}

func (l *accessList) pop() *access {
	a := l.first
	if a != nil {
		l.first, a.next = a.next, nil
	}
	return a
}
