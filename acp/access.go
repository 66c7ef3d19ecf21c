package acp

import (
	"encoding/binary"
	"errors"

	"github.com/softrnic/softrnic/acp/internal/fabric"
)

// access is one operation of the adapter on memory of another rank, by its global address.
type access struct {
	fabric.Op
	p        *Process
	ga       GA  // if known is set, of nothing but the rank: Addr and RKey are given
	n        int // bytes there
	local    *Region
	owner    accessOwner
	retried  bool // it has been refused once
	resolved bool
	request  *Request        // of a channel, whose memory leaves
	words    [maxInline]byte // of Inline
	next     *access
}

// accessOwner hears when an access is done, with the lock held. The access is not its own any more when it
// returns.
type accessOwner interface{ onAccessDone(a *access, err error) }

// maxInline is the longest piece of a message that travels in its request.
const maxInline = fabric.InlineMax

// newAccess returns an access to n bytes at an address, to be filled in and started.
func (p *Process) newAccess(ga GA, n int, owner accessOwner) *access {
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

// setLocal makes n bytes at an offset of a region of ours what the access reads or writes.
func (a *access) setLocal(r *Region, off, n int) {
	a.Mem, a.Off, a.N, a.local = r.mr, off, n, r
	r.uses++
}

// newPut makes the access a put of n bytes of our memory.
func (p *Process) newPut(to GA, from *Region, off, n int, owner accessOwner) *access {
	a := p.newAccess(to, n, owner)
	a.Kind = fabric.Put
	a.setLocal(from, off, n)
	return a
}

// newGet makes the access a get of n bytes into our memory.
func (p *Process) newGet(into *Region, off int, from GA, n int, owner accessOwner) *access {
	a := p.newAccess(from, n, owner)
	a.Kind = fabric.Get
	a.setLocal(into, off, n)
	return a
}

// newWordPut makes the access a put of a word.
func (p *Process) newWordPut(to GA, w uint64, owner accessOwner) *access {
	a := p.newAccess(to, 8, owner)
	a.Kind, a.Inline = fabric.Put, binary.NativeEndian.AppendUint64(a.words[:0], w)
	return a
}

// newTwoWordPut makes the access a put of two words, of which the second becomes visible last.
func (p *Process) newTwoWordPut(to GA, w [2]uint64, owner accessOwner) *access {
	a := p.newWordPut(to, w[0], owner)
	a.n, a.Inline = 16, binary.NativeEndian.AppendUint64(a.Inline, w[1])
	return a
}

// startAccess begins an access, as soon as it is known where its memory is.
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
		if r.entries[number] == nil { // it has failed already
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

// OpDone implements fabric.Owner. A refusal may mean that the number of the region is another region's
// now: its entry is read once more.
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

// finishAccess gives an access back.
func (p *Process) finishAccess(a *access, err error) {
	if a.local != nil {
		a.local.uses--
	}
	a.owner.onAccessDone(a, err)
	*a = access{p: p, next: p.freeAccesses}
	p.freeAccesses = a
}

// accessList is accesses in order.
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
