package qp

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// script reads choices from the fuzzer's bytes; after their end all are 0.
type script struct{ rest []byte }

func (s *script) byte() byte {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

func (s *script) below(n int) int { return int(s.byte()) % n }

func (s *script) bytes(n int) []byte {
	n = min(n, len(s.rest))
	b := s.rest[:n]
	s.rest = s.rest[n:]
	return b
}

// victim is a connected queue pair, a, with the parts of its memory that must not change.
type victim struct {
	*pair
	*script
	posted            uint64
	backing           []byte // around the regions below
	readOnly, foreign uint32
}

const guard = 512 // bytes before, between and after the guarded regions

func newVictim(t *testing.T, s *script) *victim {
	v := &victim{script: s}
	v.pair = connect(t, ofType([]verbs.QPType{verbs.RC, verbs.RC, verbs.UC, verbs.UD}[s.below(4)]), func(o *options) {
		o.credits, o.srq = s.below(2) == 1, s.below(4) == 1
	})
	v.backing = make([]byte, 5*guard)
	for i := range v.backing {
		v.backing[i] = garbage
	}
	m := v.a.mem
	v.readOnly = m.add(v.a.base+1<<24, v.backing[guard:2*guard], verbs.AccessLocalWrite|verbs.AccessRemoteRead)
	v.foreign = m.add(v.a.base+2<<24, v.backing[3*guard:4*guard], allAccess)
	m.regions[v.foreign].foreign = true
	return v
}

// runScript executes the script on the victim.
func (v *victim) runScript() {
	for len(v.rest) > 0 {
		switch v.below(8) {
		case 0:
			v.post()
		case 1: // a regular exchange
			v.deliver(v.b, v.drain(v.a)...)
			v.deliverCorrupted(v.drain(v.b), false)
		case 2: // packets of the peer, corrupted with a valid ICRC
			v.deliverCorrupted(v.drain(v.b), true)
		case 3:
			v.drain(v.a) // lost
		case 4:
			if v.a.Deadline() != 0 {
				v.advanceToDeadline(v.a)
			}
		case 5:
			v.handleRaw(v.bytes(v.below(80)))
		case 6:
			v.handleCrafted()
		case 7:
			v.state()
		}
		v.check()
	}
}

// handleRaw handles a datagram of arbitrary bytes at the victim.
func (v *victim) handleRaw(b []byte) {
	pkt := &wire.Packet{Src: v.b.addr, Dst: v.a.addr, TOS: v.byte()}
	if pkt.Parse(b) == wire.DropNone {
		v.deliver(v.a, pkt)
	}
}

// deliverCorrupted handles packets at the victim, with some bytes changed.
func (v *victim) deliverCorrupted(pkts []*wire.Packet, damage bool) {
	for _, pkt := range pkts {
		raw := bytes.Clone(pkt.Raw)
		for damage && v.below(3) > 0 {
			raw[v.below(len(raw))] ^= v.byte()
		}
		v.handleRaw(raw)
	}
}

// handleCrafted handles a packet that is valid in most of its fields at the victim: any opcode, at
// or near the expected PSN, with valid or almost valid keys and addresses.
func (v *victim) handleCrafted() {
	i := wire.Opcode(v.byte()).Info()
	n := []int{0, 8, 255, 256, 257, 600}[v.below(6)]
	pad := wire.PadFor(n)
	if !i.Valid {
		return
	}
	b := make([]byte, i.HeaderLen+n+pad+wire.ICRCLen)
	psn := v.a.responder.recv.Expected()
	if i.Response {
		psn = v.a.una
	}
	h := wire.BTH{Opcode: i.Opcode, Pad: uint8(pad), PKey: wire.DefaultPKey, DestQPN: v.a.Num(),
		PSN: psn.Add(v.below(5) - 2 + v.below(2)*(v.below(3)-1)<<22), AckReq: v.below(2) == 1}
	if v.below(4) > 0 {
		h.PSN = psn
	}
	h.Put(b)
	key := []uint32{v.a.key, v.a.key, v.readOnly, v.foreign, 0xbad, 0}[v.below(6)]
	base := v.a.mem.regions[v.a.key].base
	if r := v.a.mem.regions[key]; r != nil {
		base = r.base
	}
	va := base + uint64(v.below(8)*8) + []uint64{0, 0, 0, 1, guard - 8, regionBytes - 8, 1 << 63, ^base + 1}[v.below(8)]
	length := []uint32{uint32(n), uint32(n), 0, 600, 1 << 20, 1<<32 - 1}[v.below(6)]
	switch {
	case i.FETH:
		wire.FETH{Placement: uint8(v.below(4)), Selectivity: uint8(v.below(3))}.Put(b[wire.BTHLen:])
		wire.RETH{VA: va, RKey: key, Length: length}.Put(b[wire.BTHLen+wire.FETHLen:])
	case i.RETH:
		wire.RETH{VA: va, RKey: key, Length: length}.Put(b[wire.BTHLen:])
	case i.AtomicETH:
		wire.AtomicETH{VA: va, RKey: key, SwapAdd: 1}.Put(b[wire.BTHLen:])
	case i.AETH:
		wire.AETH{Syndrome: wire.Syndrome(v.byte()), MSN: uint32(v.byte())}.Put(b[wire.BTHLen:])
	case i.DETH:
		wire.DETH{QKey: 0x1234, SrcQPN: uint32(v.byte())}.Put(b[wire.BTHLen:])
	}
	if i.IETH {
		wire.IETH{RKey: key}.Put(b[i.HeaderLen-wire.IETHLen:])
	}
	v.handleRaw(b)
}

// post posts requests at one of the two.
func (v *victim) post() {
	v.posted++
	wrs := []verbs.SendWR{
		v.send(v.posted, 0, 300), v.write(v.posted, 0, 4096, 600), v.read(v.posted, 8192, 0, 600), v.fetchAdd(v.posted, 16384, 0, 1),
		v.writeImm(v.posted, 0, 0, 8, 1), withFlags(v.write(v.posted, 0, 0, 8), verbs.SendFence), bind(v.posted, v.a, v.a.mem.window(v.a.key), 0, 8, 0),
		v.atomicWrite(v.posted, 0, 4096), v.flush(v.posted, 4096, 64),
	}
	wr := v.toPeer(wrs[v.below(len(wrs))])
	wr.Flags |= verbs.SendSignaled
	n := v.a
	if v.below(2) == 1 { // requests of the peer to the victim
		n = v.b
		wr.SGList = []verbs.SGE{v.b.sge(0, int(listLength(wr.SGList)))}
		wr.RKey, wr.RemoteAddr, wr.RemoteQPN = v.a.key, v.a.base+4096, v.a.Num()
	}
	_, _ = n.PostSend(v.now, []verbs.SendWR{wr})
	recv := verbs.RecvWR{WRID: v.posted, SGList: []verbs.SGE{n.sge(32768, v.below(3)*300)}}
	if n.srq == nil {
		_, _ = n.PostRecv([]verbs.RecvWR{recv})
	} else if !n.srq.full() {
		n.srq.push(&recv)
	}
}

// state modifies the victim to another state, and up again from RESET.
func (v *victim) state() {
	to := []verbs.QPState{verbs.StateSQD, verbs.StateRTS, verbs.StateRTS, verbs.StateErr, verbs.StateReset}[v.below(5)]
	_ = v.modify(v.a, to)
	if v.a.State() == verbs.StateReset {
		o := newOptions([]option{ofType(v.a.typ)})
		v.modifyTo(v.a, v.b, uint32(v.byte()), uint32(v.b.top), o, verbs.StateRTS)
	}
}

// check checks the invariants after every step.
func (v *victim) check() {
	checkInvariants(v.t, v.a.Core)
	require.Equal(v.t, bytes.Repeat([]byte{garbage}, len(v.backing)), v.backing, "memory without write access")
	c := v.a.Counters()
	require.LessOrEqual(v.t, c.DuplicateRequest+c.OutOfSeqRequest+c.CNPReceived, c.RcvdPkts)
	require.LessOrEqual(v.t, uint64(len(v.a.wcs)), 2*v.posted, "a request and a receive were posted each time")
}

// FuzzLiveQP executes arbitrary packets, requests, times and state changes on a connected queue
// pair: it never panics, writes only where its requests and regions permit, and its queues and
// windows stay consistent.
func FuzzLiveQP(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 1, 1, 1})
	f.Add([]byte{0, 0, 0, 0, 7, 0, 0, 8, 0, 1, 1, 0, 7, 1, 0, 8, 1, 1, 1})                // ATOMIC WRITE and FLUSH of both
	f.Add([]byte{0, 0, 0, 6, 0x1d, 1, 0, 0, 0, 0, 0, 1, 6, 0x1c, 0, 0, 0, 0, 0, 0, 1, 1}) // and at the victim
	f.Add([]byte{0, 1, 0, 2, 1, 0, 3, 0, 1, 4, 1, 0, 2, 1, 1, 1})
	f.Add([]byte{1, 0, 0, 1, 1, 2, 2, 7, 9, 0, 2, 2, 1, 30, 1, 0})
	f.Add(append([]byte{0, 0, 0, 6, 0x0a, 1, 0, 0, 0, 0, 0, 0, 6, 0x0c, 0, 0, 0, 0, 0}, bytes.Repeat([]byte{6, 4, 1, 0, 2, 3, 1}, 8)...))
	seed := make([]byte, 64)
	for i := range 32 {
		for k := 0; k < len(seed); k += 8 {
			binary.LittleEndian.PutUint64(seed[k:], uint64(i*k+1)*0x9e3779b97f4a7c15)
		}
		f.Add(bytes.Clone(seed))
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) > 2000 {
			return
		}
		newVictim(t, &script{choices}).runScript()
	})
}
