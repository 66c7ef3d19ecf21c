package acp

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// peer is the state of another rank that this rank accesses.
type peer struct {
	rank      int
	connected bool   // its card has arrived
	probing   bool   // a probe is in flight
	lostErr   error  // not nil if the rank is lost
	directory uint64 // address of its directory of regions
	rkey      uint32
	pending   accessList // accesses queued until it is connected
	entries   map[uint16]*regionEntry
	probe     fabric.Op
}

// regionEntry caches the directory entry of a peer's region.
type regionEntry struct {
	protocol.Entry
	valid   bool
	pending accessList // accesses queued until the entry is valid
}

// peerFor returns the state of a rank, and starts connecting to it on first use.
func (p *Process) peerFor(rank int) *peer {
	r := p.peers[rank]
	if r == nil {
		r = &peer{rank: rank, entries: map[uint16]*regionEntry{}}
		p.peers[rank] = r
		p.net.Connect(rank)
	}
	return r
}

// onPeerFound handles the card of a connected rank.
func (p *Process) onPeerFound(rank int, card []byte) {
	if !p.hasRank(rank) {
		return
	}
	r := p.peerFor(rank)
	if r.connected || r.lostErr != nil {
		return
	}
	if len(card) < 16 || binary.NativeEndian.Uint32(card[12:]) != byteOrder {
		p.onPeerLost(rank, fmt.Errorf("%w: byte order differs", ErrLost))
		return
	}
	r.connected, r.directory, r.rkey = true, binary.BigEndian.Uint64(card), binary.BigEndian.Uint32(card[8:])
	for a := r.pending.pop(); a != nil; a = r.pending.pop() {
		p.startAccess(a)
	}
	p.net.Flush()
}

// onPeerLost fails the accesses to a lost rank.
func (p *Process) onPeerLost(rank int, cause error) {
	if !p.hasRank(rank) {
		return
	}
	r := p.peerFor(rank)
	if r.lostErr != nil {
		return
	}
	r.lostErr = cause
	for a := r.pending.pop(); a != nil; a = r.pending.pop() {
		p.finishAccess(a, cause)
	}
	for _, e := range r.entries {
		for a := e.pending.pop(); a != nil; a = e.pending.pop() {
			p.finishAccess(a, cause)
		}
	}
	p.channels.failPeer(rank, cause)
	p.changes++
}

// probeRank starts a liveness probe: an empty put, which the peer's adapter acknowledges or which fails.
func (p *Process) probeRank(rank int) {
	r := p.peerFor(rank)
	if !r.connected || r.probing || r.lostErr != nil {
		return // a peer that is being connected needs no probe: connecting fails as well
	}
	r.probing = true
	r.probe = fabric.Op{Kind: fabric.Put, Owner: (*probeOp)(r)}
	p.net.Post(rank, &r.probe)
	p.net.Flush()
}

// probeOp is a peer as the fabric.Owner of its liveness probe.
type probeOp peer

// OpDone implements fabric.Owner.
func (r *probeOp) OpDone(*fabric.Op, error) { r.probing = false }

// entryLookup reads an entry of a peer's directory.
type entryLookup struct {
	p      *Process
	peer   *peer
	number uint16
	slot   int // slot of memory.readBuf
	tries  int
	op     fabric.Op
}

// maxLookupTries is the maximum number of reads of an entry that changes meanwhile.
const maxLookupTries = 16

// lookUpEntry starts the lookup of an unknown directory entry.
func (p *Process) lookUpEntry(r *peer, number uint16) *regionEntry {
	e := &regionEntry{}
	r.entries[number] = e
	p.readEntry(&entryLookup{p: p, peer: r, number: number})
	return e
}

// readEntry posts the read of a directory entry, or queues it until a slot of readBuf is free.
func (p *Process) readEntry(l *entryLookup) {
	m := &p.memory.readBuf
	if len(m.free) == 0 {
		m.waiting = append(m.waiting, l)
		return
	}
	l.slot = m.allocSlot()
	l.op = fabric.Op{Kind: fabric.Get, Mem: m.mr, Off: l.slot * protocol.EntrySize, N: protocol.EntrySize,
		Addr: l.peer.directory + uint64(l.number)*protocol.EntrySize, RKey: l.peer.rkey, Owner: l}
	p.net.Post(l.peer.rank, &l.op)
}

// OpDone implements fabric.Owner.
func (l *entryLookup) OpDone(_ *fabric.Op, err error) {
	w := l.p.memory.readBuf.slotWords(l.slot)
	l.p.freeReadSlot(l.slot)
	e := l.peer.entries[l.number]
	if err == nil {
		var complete bool
		if e.Entry, complete = protocol.ParseEntry(w); !complete {
			if l.tries++; l.tries < maxLookupTries {
				l.p.readEntry(l)
				return
			}
		}
		if !complete || e.Length == 0 {
			err = ErrRegion
		}
	}
	e.valid = err == nil
	if !e.valid {
		delete(l.peer.entries, l.number) // the region may be registered later
	}
	for a := e.pending.pop(); a != nil; a = e.pending.pop() {
		if err != nil {
			l.p.finishAccess(a, err)
		} else {
			l.p.startAccess(a)
		}
	}
}
