package acp

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// peer is another rank that something is wanted of.
type peer struct {
	rank      int
	met       bool   // the card is there
	probed    bool   // it is being asked whether it is there
	why       error  // it is lost
	directory uint64 // address there
	rkey      uint32
	waiting   accessList // until it is met
	entries   map[uint16]*entry
	probe     fabric.Op
}

// entry is what we know of a region of a peer, or are about to.
type entry struct {
	protocol.Entry
	known   bool
	waiting accessList // until it is
}

// peer returns what we know of a rank, and begins to find it if that is nothing.
func (p *Process) peer(rank int) *peer {
	r := p.peers[rank]
	if r == nil {
		r = &peer{rank: rank, entries: map[uint16]*entry{}}
		p.peers[rank] = r
		p.net.Connect(rank)
	}
	return r
}

// Met implements fabric.Host.
func (p *Process) Met(rank int, card []byte) {
	if !p.has(rank) {
		return
	}
	r := p.peer(rank)
	if r.met || r.why != nil {
		return
	}
	if len(card) < 16 || binary.NativeEndian.Uint32(card[12:]) != byteOrder {
		p.Lost(rank, fmt.Errorf("%w: its words have another byte order", ErrLost))
		return
	}
	r.met, r.directory, r.rkey = true, binary.BigEndian.Uint64(card), binary.BigEndian.Uint32(card[8:])
	for a := r.waiting.pop(); a != nil; a = r.waiting.pop() {
		p.start(a)
	}
	p.net.Flush()
}

// Lost implements fabric.Host.
func (p *Process) Lost(rank int, why error) {
	if !p.has(rank) {
		return
	}
	r := p.peer(rank)
	if r.why != nil {
		return
	}
	r.why = why
	for a := r.waiting.pop(); a != nil; a = r.waiting.pop() {
		p.ended(a, why)
	}
	for _, e := range r.entries {
		for a := e.waiting.pop(); a != nil; a = e.waiting.pop() {
			p.ended(a, why)
		}
	}
	p.channels.lost(rank, why)
	p.turns.events++
}

// ask has a look whether a rank is still there: an empty put is acknowledged by its adapter, and fails
// if it is gone.
func (p *Process) ask(rank int) {
	r := p.peer(rank)
	if !r.met || r.probed || r.why != nil {
		return // or it is being found, which fails as well
	}
	r.probed = true
	r.probe = fabric.Op{Kind: fabric.Put, Owner: (*probe)(r)}
	p.net.Post(rank, &r.probe)
	p.net.Flush()
}

// probe hears the answer to ask.
type probe peer

// OpDone implements fabric.Owner.
func (r *probe) OpDone(*fabric.Op, error) { r.probed = false }

// lookup reads an entry of a peer's directory.
type lookup struct {
	p      *Process
	peer   *peer
	number uint16
	slot   int // of memory.landing
	tries  int
	op     fabric.Op
}

// lookupTries is how often an entry is read that changes meanwhile.
const lookupTries = 16

// look begins a lookup.
func (p *Process) look(r *peer, number uint16) *entry {
	e := &entry{}
	r.entries[number] = e
	p.read(&lookup{p: p, peer: r, number: number})
	return e
}

func (p *Process) read(l *lookup) {
	m := &p.memory.landing
	if len(m.free) == 0 {
		m.wait = append(m.wait, l)
		return
	}
	l.slot = m.take()
	l.op = fabric.Op{Kind: fabric.Get, Mem: m.mr, Off: l.slot * protocol.EntrySize, N: protocol.EntrySize,
		Addr: l.peer.directory + uint64(l.number)*protocol.EntrySize, RKey: l.peer.rkey, Owner: l}
	p.net.Post(l.peer.rank, &l.op)
}

// OpDone implements fabric.Owner.
func (l *lookup) OpDone(_ *fabric.Op, err error) {
	w := l.p.memory.landing.words(l.slot)
	l.p.freeLanding(l.slot)
	e := l.peer.entries[l.number]
	if err == nil {
		var whole bool
		if e.Entry, whole = protocol.ParseEntry(w); !whole {
			if l.tries++; l.tries < lookupTries {
				l.p.read(l)
				return
			}
		}
		if !whole || e.Length == 0 {
			err = ErrRegion
		}
	}
	e.known = err == nil
	if !e.known {
		delete(l.peer.entries, l.number) // it may be registered later
	}
	for a := e.waiting.pop(); a != nil; a = e.waiting.pop() {
		if err != nil {
			l.p.ended(a, err)
		} else {
			l.p.start(a)
		}
	}
}
