package acp

import (
	"encoding/binary"
	"errors"

	"github.com/softrnic/softrnic/acp/internal/fabric"
)

// access is one operation of the adapter on memory of another rank, by its global address.
type access struct {
	fabric.Op
	p       *Process
	ga      GA  // if known is set, of nothing but the rank: Addr and RKey are given
	n       int // bytes there
	local   *Region
	owner   accessOwner
	again   bool // it has been refused once
	known   bool
	request *Request        // of a channel, whose memory leaves
	words   [inlineMax]byte // of Inline
	next    *access
}

// accessOwner hears when an access is done, with the lock held. The access is not its own any more when it
// returns.
type accessOwner interface{ accessed(a *access, err error) }

// inlineMax is the longest piece of a message that travels in its request.
const inlineMax = fabric.InlineMax

// newAccess returns an access to n bytes at an address, to be filled in and started.
func (p *Process) newAccess(ga GA, n int, owner accessOwner) *access {
	a := p.accesses
	if a == nil {
		a = &access{p: p}
	} else {
		p.accesses, a.next = a.next, nil
	}
	a.ga, a.n, a.owner = ga, n, owner
	a.Owner = a
	return a
}

// use makes n bytes at an offset of a region of ours what the access reads or writes.
func (a *access) use(r *Region, off, n int) {
	a.Mem, a.Off, a.N, a.local = r.mr, off, n, r
	r.uses++
}

// put makes the access a put of n bytes of our memory.
func (p *Process) put(to GA, from *Region, off, n int, owner accessOwner) *access {
	a := p.newAccess(to, n, owner)
	a.Kind = fabric.Put
	a.use(from, off, n)
	return a
}

// get makes the access a get of n bytes into our memory.
func (p *Process) get(into *Region, off int, from GA, n int, owner accessOwner) *access {
	a := p.newAccess(from, n, owner)
	a.Kind = fabric.Get
	a.use(into, off, n)
	return a
}

// putWord makes the access a put of a word.
func (p *Process) putWord(to GA, w uint64, owner accessOwner) *access {
	a := p.newAccess(to, 8, owner)
	a.Kind, a.Inline = fabric.Put, binary.NativeEndian.AppendUint64(a.words[:0], w)
	return a
}

// putWords makes the access a put of two words, of which the second becomes visible last.
func (p *Process) putWords(to GA, w [2]uint64, owner accessOwner) *access {
	a := p.putWord(to, w[0], owner)
	a.n, a.Inline = 16, binary.NativeEndian.AppendUint64(a.Inline, w[1])
	return a
}

// start begins an access, as soon as it is known where its memory is.
func (p *Process) start(a *access) {
	rank := a.ga.Rank()
	switch {
	case rank == p.rank:
		p.own.push(a)
		return
	case rank >= p.size:
		p.ended(a, ErrRank)
		return
	}
	r := p.peer(rank)
	switch {
	case r.why != nil:
		p.ended(a, r.why)
		return
	case !r.met:
		r.waiting.push(a)
		return
	case a.known:
		p.net.Post(rank, &a.Op)
		return
	}
	number := uint16(a.ga.Region())
	e := r.entries[number]
	if e == nil {
		if number == 0 {
			p.ended(a, ErrRegion)
			return
		}
		e = p.look(r, number)
		if r.entries[number] == nil { // it has failed already
			p.ended(a, ErrRegion)
			return
		}
	}
	switch {
	case !e.known:
		e.waiting.push(a)
	case !e.Holds(a.ga.Offset(), uint64(a.n)):
		p.ended(a, ErrRange)
	default:
		a.Addr, a.RKey = e.Addr+a.ga.Offset(), e.RKey
		if a.Kind >= fabric.CompareSwap && a.Addr%8 != 0 {
			p.ended(a, ErrAlign)
			return
		}
		p.net.Post(rank, &a.Op)
	}
}

// OpDone implements fabric.Owner. A refusal may mean that the number of the region is another region's
// now: its entry is read once more.
func (a *access) OpDone(_ *fabric.Op, err error) {
	if errors.Is(err, fabric.ErrAccess) && !a.again && !a.known {
		r := a.p.peer(a.ga.Rank())
		if number := uint16(a.ga.Region()); r.entries[number] != nil && r.entries[number].known && r.entries[number].RKey == a.RKey {
			delete(r.entries, number)
		}
		a.again = true
		a.p.start(a)
		return
	}
	a.p.ended(a, err)
}

// ended gives an access back.
func (p *Process) ended(a *access, err error) {
	if a.local != nil {
		a.local.uses--
	}
	a.owner.accessed(a, err)
	*a = access{p: p, next: p.accesses}
	p.accesses = a
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
