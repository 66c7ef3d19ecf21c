package qp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestNAKsAtTheRequester checks the effect of each NAK: it fails the request of its PSN, earlier
// ones are acknowledged, later ones are flushed.
func TestNAKsAtTheRequester(t *testing.T) {
	for s, status := range map[wire.Syndrome]verbs.WCStatus{
		0x61: verbs.WCRemInvReqErr, 0x62: verbs.WCRemAccessErr, 0x63: verbs.WCRemOpErr, 0x64: verbs.WCRemInvRDReqErr,
	} {
		p := connect(t)
		p.a.recv(9, 0, 8)
		p.a.post(p.now, unsignaled(p.write(1, 0, 0, 8)), unsignaled(p.send(2, 0, 600)), p.write(3, 0, 0, 8))
		p.drain(p.a)
		p.deliver(p.a, p.response(p.b, wire.RCAck, 2, s, nil))
		require.Equal(t, p.a.wcs[0].Failure.Opcode, "SEND")
		require.EqualValues(t, (nearWrap+2)&wire.PSNMask, p.a.wcs[0].Failure.PSN)
		require.Equal(t, []string{fmt.Sprintf("2 %v", status), "3 WR_FLUSH_ERR", "9 WR_FLUSH_ERR"}, p.a.takeCompletions())
		require.Equal(t, verbs.StateErr, p.a.State())
		require.EqualValues(t, 1, p.a.Counters().SendErr)
	}
}

// TestCausesOfRefusals checks that the cause in a completion matches its request.
func TestCausesOfRefusals(t *testing.T) {
	for _, c := range []struct {
		wr   func(p *pair) verbs.SendWR
		nak  wire.Syndrome
		says string
	}{
		{func(p *pair) verbs.SendWR { return p.fetchAdd(1, 0, 4, 1) }, 0x61, "must be a multiple of 8"},
		{func(p *pair) verbs.SendWR { return p.fetchAdd(1, 0, 8, 1) }, 0x61, "(it requires AccessRemoteAtomic), or serves fewer"},
		{func(p *pair) verbs.SendWR { return p.read(1, 0, 0, 8) }, 0x61, "(it requires AccessRemoteRead), or serves fewer"},
		{func(p *pair) verbs.SendWR { return p.write(1, 0, 0, 8) }, 0x61, "(it requires AccessRemoteWrite), or the path MTUs differ"},
		{func(p *pair) verbs.SendWR { return p.send(1, 0, 8) }, 0x61, "longer than the peer's receive"},
		{func(p *pair) verbs.SendWR { return p.cmpSwap(1, 0, 4, 1, 1) }, 0x62, "or without AccessRemoteAtomic"},
		{func(p *pair) verbs.SendWR { return p.read(1, 0, 0, 8) }, 0x62, "or without AccessRemoteRead"},
		{func(p *pair) verbs.SendWR { return p.write(1, 0, 0, 8) }, 0x62, "or without AccessRemoteWrite"},
		{func(p *pair) verbs.SendWR { return withInv(p.send(1, 0, 8), 0x77) }, 0x62, "key to invalidate"},
	} {
		p := connect(t)
		wr := c.wr(p)
		p.a.post(p.now, wr)
		p.drain(p.a)
		p.deliver(p.a, p.response(p.b, wire.RCAck, 0, c.nak, nil))
		require.Contains(t, p.a.wcs[0].Failure.Cause, c.says)
		if wr.Opcode == verbs.WRSendWithInv {
			require.EqualValues(t, 0x77, p.a.wcs[0].Failure.Key)
		} else {
			require.Equal(t, wr.RKey, p.a.wcs[0].Failure.Key)
		}
	}
}

// TestNAKBehindALostResponse checks that a fatal NAK fails the request of its PSN. An earlier read
// or atomic whose response is lost fails separately, since the peer does not respond any more.
func TestNAKBehindALostResponse(t *testing.T) {
	p := connect(t)
	bad := p.write(5, 0, 0, 8)
	bad.RKey ^= 0x100
	p.a.post(p.now, unsignaled(p.write(1, 0, 0, 8)), p.read(2, 0, 0, 8), p.write(3, 0, 0, 8), p.read(4, 0, 0, 8), bad, p.write(6, 0, 0, 8))
	p.deliver(p.b, p.drain(p.a)...)
	answers := p.drain(p.b)
	nak := answers[len(answers)-1]
	require.EqualValues(t, 0x62, nak.AETH().Syndrome)
	p.deliver(p.a, nak)
	wcs := p.a.wcs
	require.Equal(t, []string{"2 RETRY_EXC_ERR", "3 WR_FLUSH_ERR", "4 WR_FLUSH_ERR", "5 REM_ACCESS_ERR", "6 WR_FLUSH_ERR"}, p.a.takeCompletions())
	require.Equal(t, "RDMA_READ", wcs[0].Failure.Opcode)
	require.EqualValues(t, (nearWrap+1)&wire.PSNMask, wcs[0].Failure.PSN)
	require.Contains(t, wcs[0].Failure.Event, fmt.Sprintf("0x62) to a later request, at PSN %d", nak.BTH.PSN))
	require.Zero(t, wcs[0].Failure.Key, "its key is not to blame")
	require.Equal(t, "RDMA_WRITE", wcs[3].Failure.Opcode)
	require.Equal(t, bad.RKey, wcs[3].Failure.Key)
	require.EqualValues(t, nak.BTH.PSN, wcs[3].Failure.PSN)
	require.Equal(t, verbs.StateErr, p.a.State())
}

// TestNAKInsideARead checks that a read fails if a part of it is rejected, also with lost
// responses.
func TestNAKInsideARead(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.read(1, 0, 0, 3000))
	p.drain(p.a)
	p.deliver(p.a, p.response(p.b, wire.RCAck, 1, 0x62, nil))
	require.Equal(t, p.a.wcs[0].Failure.Key, p.b.key)
	require.Equal(t, []string{"1 REM_ACCESS_ERR"}, p.a.takeCompletions())
}

// refusal is a request that a responder must reject.
type refusal struct {
	what  string
	opts  []option
	setup func(p *pair)
	pkts  func(p *pair) []*wire.Packet
	nak   wire.Syndrome
	psn   int
	held  verbs.WCStatus // of the receive in use, or 0: an event reports it
	event verbs.EventType
}

func (p *pair) request(op wire.Opcode, psn, n int, fill func(b []byte)) *wire.Packet {
	return p.packet(p.a, wire.BTH{Opcode: op, PSN: wire.PSN(p.psn[0]).Add(psn), AckReq: true}, make([]byte, n), fill)
}

func (p *pair) reth(remote, n int, key uint32) func(b []byte) {
	return func(b []byte) {
		wire.RETH{VA: p.b.base + uint64(remote), RKey: key, Length: uint32(n)}.Put(b[wire.BTHLen:])
	}
}

// longest announces a message of 2^31 bytes, which is valid except for its memory, and tooLong one
// of more.
func (p *pair) longest(b []byte) {
	wire.RETH{VA: p.b.base, RKey: p.b.key, Length: MaxMessage}.Put(b[wire.BTHLen:])
}

func (p *pair) tooLong(b []byte) {
	wire.RETH{VA: p.b.base, RKey: p.b.key, Length: MaxMessage + 1}.Put(b[wire.BTHLen:])
}

func (p *pair) atomicETH(remote int, key uint32) func(b []byte) {
	return func(b []byte) {
		wire.AtomicETH{VA: p.b.base + uint64(remote), RKey: key, SwapAdd: 1}.Put(b[wire.BTHLen:])
	}
}

func only(f func(p *pair) *wire.Packet) func(p *pair) []*wire.Packet {
	return func(p *pair) []*wire.Packet { return []*wire.Packet{f(p)} }
}

const (
	reqErr = verbs.EventQPReqErr
	accErr = verbs.EventQPAccessErr
)

// key registers b's memory again with other permissions.
func (p *pair) key(access verbs.AccessFlags) uint32 { return p.b.mem.add(p.b.base, p.b.buf, access) }

func (p *pair) foreign() uint32 {
	key := p.key(allAccess)
	p.b.mem.regions[key].foreign = true
	return key
}

// window binds a memory window of b's whole region to queue pair qpn.
func (p *pair) window(qpn uint32) uint32 {
	key := p.b.mem.window(p.b.key)
	w := p.b.mem.regions[key]
	w.base, w.bytes, w.access, w.bound = p.b.base, p.b.buf, allAccess, qpn
	return key
}

// refusals lists requests that a responder rejects, with the NAK, its PSN, and the completion or
// event at the responder.
var refusals = []refusal{
	// opcode sequence
	{what: "MIDDLE first", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCSendMiddle, 0, 256, nil) }), nak: 0x61, event: reqErr},
	{what: "LAST first", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteLast, 0, 8, nil) }), nak: 0x61, event: reqErr},
	{what: "ONLY inside a message", pkts: func(p *pair) []*wire.Packet {
		return []*wire.Packet{p.request(wire.RCSendFirst, 0, 256, nil), p.request(wire.RCSendOnly, 1, 8, nil)}
	}, nak: 0x61, psn: 1, held: verbs.WCRemInvReqErr},
	{what: "READ inside a message", pkts: func(p *pair) []*wire.Packet {
		return []*wire.Packet{p.request(wire.RCWriteFirst, 0, 256, p.reth(0, 600, p.b.key)), p.readRequest(1, 0, 8, p.b.key)}
	}, nak: 0x61, psn: 1, event: reqErr},
	{what: "atomic inside a message", pkts: func(p *pair) []*wire.Packet {
		return []*wire.Packet{p.request(wire.RCSendFirst, 0, 256, nil), p.request(wire.RCFetchAdd, 1, 0, p.atomicETH(0, p.b.key))}
	}, nak: 0x61, psn: 1, held: verbs.WCRemInvReqErr},
	{what: "SEND and WRITE mixed", pkts: func(p *pair) []*wire.Packet {
		return []*wire.Packet{p.request(wire.RCSendFirst, 0, 256, nil), p.request(wire.RCWriteLast, 1, 8, nil)}
	}, nak: 0x61, psn: 1, held: verbs.WCRemInvReqErr},
	// permitted operations
	{what: "WRITE not allowed", opts: []option{withAccess(verbs.AccessRemoteRead)},
		pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteOnly, 0, 8, p.reth(0, 8, p.b.key)) }), nak: 0x61, event: reqErr},
	{what: "empty WRITE not allowed", opts: []option{withAccess(0)},
		pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteOnly, 0, 0, p.reth(0, 0, 0)) }), nak: 0x61, event: reqErr},
	{what: "READ not allowed", opts: []option{withAccess(verbs.AccessRemoteWrite)},
		pkts: only(func(p *pair) *wire.Packet { return p.readRequest(0, 0, 8, p.b.key) }), nak: 0x61, event: reqErr},
	{what: "atomic not allowed", opts: []option{withAccess(verbs.AccessRemoteWrite | verbs.AccessRemoteRead)},
		pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCCmpSwap, 0, 0, p.atomicETH(0, p.b.key)) }), nak: 0x61, event: reqErr},
	// keys
	{what: "WRITE with an unknown key", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteOnly, 0, 8, p.reth(0, 8, 0xbad)) }), nak: 0x62, event: accErr},
	{what: "WRITE into another domain", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteOnly, 0, 8, p.reth(0, 8, p.foreign())) }), nak: 0x62, event: accErr},
	{what: "WRITE without permission", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCWriteOnly, 0, 8, p.reth(0, 8, p.key(allAccess&^verbs.AccessRemoteWrite)))
	}), nak: 0x62, event: accErr},
	{what: "WRITE beyond the region", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCWriteFirst, 0, 256, p.reth(regionBytes-300, 301, p.b.key))
	}), nak: 0x62, event: accErr},
	{what: "WRITE before the region", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteOnly, 0, 8, p.reth(-1, 8, p.b.key)) }), nak: 0x62, event: accErr},
	{what: "WRITE around the address space", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCWriteOnly, 0, 8, func(b []byte) { wire.RETH{VA: ^uint64(0) - 3, RKey: p.b.key, Length: 8}.Put(b[wire.BTHLen:]) })
	}), nak: 0x62, event: accErr},
	{what: "WRITE through a window of another queue pair", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCWriteOnly, 0, 8, p.reth(0, 8, p.window(p.b.Num()+1)))
	}), nak: 0x62, event: accErr},
	{what: "READ through a window that is not bound", pkts: only(func(p *pair) *wire.Packet { return p.readRequest(0, 0, 8, p.window(0)) }), nak: 0x62, event: accErr},
	{what: "WRITE with immediate and an unknown key", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteOnlyImm, 0, 8, p.reth(0, 8, 0xbad)) }),
		nak: 0x62, held: verbs.WCRemAccessErr},
	{what: "READ with an unknown key", pkts: only(func(p *pair) *wire.Packet { return p.readRequest(0, 0, 8, 0xbad) }), nak: 0x62, event: accErr},
	{what: "READ beyond the region", pkts: only(func(p *pair) *wire.Packet { return p.readRequest(0, 1, regionBytes, p.b.key) }), nak: 0x62, event: accErr},
	{what: "READ without permission", pkts: only(func(p *pair) *wire.Packet { return p.readRequest(0, 0, 8, p.key(allAccess&^verbs.AccessRemoteRead)) }), nak: 0x62, event: accErr},
	{what: "atomic with an unknown key", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCFetchAdd, 0, 0, p.atomicETH(0, 0xbad)) }), nak: 0x62, event: accErr},
	{what: "atomic beyond the region", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCFetchAdd, 0, 0, p.atomicETH(regionBytes, p.b.key)) }), nak: 0x62, event: accErr},
	{what: "atomic without permission", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCFetchAdd, 0, 0, p.atomicETH(0, p.key(allAccess&^verbs.AccessRemoteAtomic)))
	}), nak: 0x62, event: accErr},
	// lengths
	{what: "WRITE ONLY shorter than announced", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteOnly, 0, 8, p.reth(0, 9, p.b.key)) }), nak: 0x61, event: reqErr},
	{what: "WRITE ONLY longer than announced", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteOnly, 0, 8, p.reth(0, 7, p.b.key)) }), nak: 0x61, event: reqErr},
	{what: "WRITE ONLY longer than the MTU", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteOnly, 0, 257, p.reth(0, 257, p.b.key)) }), nak: 0x61, event: reqErr},
	{what: "WRITE FIRST of a short message", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteFirst, 0, 256, p.reth(0, 256, p.b.key)) }), nak: 0x61, event: reqErr},
	{what: "WRITE FIRST shorter than the MTU", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteFirst, 0, 252, p.reth(0, 600, p.b.key)) }), nak: 0x61, event: reqErr},
	{what: "WRITE LAST too long", pkts: func(p *pair) []*wire.Packet {
		return []*wire.Packet{p.request(wire.RCWriteFirst, 0, 256, p.reth(0, 264, p.b.key)), p.request(wire.RCWriteLast, 1, 9, nil)}
	}, nak: 0x61, psn: 1, event: reqErr},
	{what: "WRITE LAST too short", pkts: func(p *pair) []*wire.Packet {
		return []*wire.Packet{p.request(wire.RCWriteFirst, 0, 256, p.reth(0, 264, p.b.key)), p.request(wire.RCWriteLast, 1, 7, nil)}
	}, nak: 0x61, psn: 1, event: reqErr},
	{what: "WRITE LAST empty", pkts: func(p *pair) []*wire.Packet {
		return []*wire.Packet{p.request(wire.RCWriteFirst, 0, 256, p.reth(0, 257, p.b.key)), p.request(wire.RCWriteLast, 1, 0, nil)}
	}, nak: 0x61, psn: 1, event: reqErr},
	{what: "WRITE MIDDLE too many", pkts: func(p *pair) []*wire.Packet {
		return []*wire.Packet{p.request(wire.RCWriteFirst, 0, 256, p.reth(0, 512, p.b.key)), p.request(wire.RCWriteMiddle, 1, 256, nil)}
	}, nak: 0x61, psn: 1, event: reqErr},
	{what: "WRITE longer than 2^31", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCWriteFirst, 0, 256, p.tooLong)
	}), nak: 0x61, event: reqErr},
	{what: "WRITE of 2^31", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCWriteFirst, 0, 256, p.longest) }), nak: 0x62, event: accErr},
	{what: "READ of 2^31", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCReadRequest, 0, 0, p.longest) }), nak: 0x62, event: accErr},
	{what: "READ longer than 2^31", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCReadRequest, 0, 0, p.tooLong) }), nak: 0x61, event: reqErr},
	{what: "padding missing", pkts: only(func(p *pair) *wire.Packet {
		return p.unpadded(p.request(wire.RCWriteOnly, 0, 7, p.reth(0, 7, p.b.key)))
	}), nak: 0x61, event: reqErr},
	{what: "SEND longer than the receive", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCSendOnly, 0, 101, nil) }),
		setup: func(p *pair) { p.b.rq.reset(); p.b.recv(9, 0, 100) }, nak: 0x61, held: verbs.WCLocLenErr},
	{what: "SEND longer than the receive in the middle", pkts: func(p *pair) []*wire.Packet {
		return []*wire.Packet{p.request(wire.RCSendFirst, 0, 256, nil), p.request(wire.RCSendMiddle, 1, 256, nil)}
	}, setup: func(p *pair) { p.b.rq.reset(); p.b.recv(9, 0, 300) }, nak: 0x61, psn: 1, held: verbs.WCLocLenErr},
	// receives without valid memory
	{what: "receive with a bad lkey", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCSendOnly, 0, 8, nil) }),
		setup: func(p *pair) {
			p.b.rq.reset()
			_, err := p.b.PostRecv([]verbs.RecvWR{{WRID: 9, SGList: []verbs.SGE{{Addr: p.b.base, Length: 8, LKey: 0xbad}}}})
			require.NoError(p.t, err)
		}, nak: 0x63, held: verbs.WCLocProtErr},
	{what: "receive that may not be written", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCSendOnly, 0, 8, nil) }),
		setup: func(p *pair) {
			p.b.rq.reset()
			_, err := p.b.PostRecv([]verbs.RecvWR{{WRID: 9, SGList: []verbs.SGE{{Addr: p.b.base, Length: 8, LKey: p.key(0)}}}})
			require.NoError(p.t, err)
		}, nak: 0x63, held: verbs.WCLocProtErr},
	// invalidation
	{what: "invalidate an unknown key", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCSendOnlyInv, 0, 8, nil) }),
		nak: 0x62, held: verbs.WCRemAccessErr},
	// atomics
	{what: "atomic not aligned", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCFetchAdd, 0, 0, p.atomicETH(4, p.b.key)) }), nak: 0x61, event: reqErr},
	{what: "atomic on memory that is not aligned", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCFetchAdd, 0, 0, p.atomicETH(0, p.b.mem.add(p.b.base, p.b.buf[4:], allAccess)))
	}), nak: 0x61, event: reqErr},
	// ATOMIC WRITE
	{what: "ATOMIC WRITE of 4 bytes", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCAtomicWrite, 0, 4, p.reth(0, 4, p.b.key)) }), nak: 0x61, event: reqErr},
	{what: "ATOMIC WRITE of 8 bytes, 16 announced", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCAtomicWrite, 0, 8, p.reth(0, 16, p.b.key)) }), nak: 0x61, event: reqErr},
	{what: "ATOMIC WRITE not aligned", pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCAtomicWrite, 0, 8, p.reth(4, 8, p.b.key)) }), nak: 0x61, event: reqErr},
	{what: "ATOMIC WRITE on memory that is not aligned", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCAtomicWrite, 0, 8, p.reth(0, 8, p.b.mem.add(p.b.base, p.b.buf[4:], allAccess)))
	}), nak: 0x61, event: reqErr},
	{what: "ATOMIC WRITE not allowed", opts: []option{withAccess(verbs.AccessRemoteRead | verbs.AccessRemoteAtomic)},
		pkts: only(func(p *pair) *wire.Packet { return p.request(wire.RCAtomicWrite, 0, 8, p.reth(0, 8, p.b.key)) }), nak: 0x61, event: reqErr},
	{what: "ATOMIC WRITE without permission", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCAtomicWrite, 0, 8, p.reth(0, 8, p.key(allAccess&^verbs.AccessRemoteWrite)))
	}), nak: 0x62, event: accErr},
	{what: "ATOMIC WRITE beyond the region", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCAtomicWrite, 0, 8, p.reth(regionBytes, 8, p.b.key))
	}), nak: 0x62, event: accErr},
	{what: "ATOMIC WRITE inside a message", pkts: func(p *pair) []*wire.Packet {
		return []*wire.Packet{p.request(wire.RCWriteFirst, 0, 256, p.reth(0, 600, p.b.key)), p.request(wire.RCAtomicWrite, 1, 8, p.reth(0, 8, p.b.key))}
	}, nak: 0x61, psn: 1, event: reqErr},
	// FLUSH
	{what: "FLUSH without placement", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCFlush, 0, 0, p.fethFor(wire.FETH{}, 0, 8, p.b.key))
	}), nak: 0x61, event: reqErr},
	{what: "FLUSH with a reserved placement", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCFlush, 0, 0, p.fethFor(wire.FETH{Placement: 5}, 0, 8, p.b.key))
	}), nak: 0x61, event: reqErr},
	{what: "FLUSH with a reserved selectivity", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCFlush, 0, 0, p.fethFor(wire.FETH{Placement: 1, Selectivity: 2}, 0, 8, p.b.key))
	}), nak: 0x61, event: reqErr},
	{what: "FLUSH not allowed", opts: []option{withAccess(verbs.AccessRemote)},
		pkts: only(func(p *pair) *wire.Packet {
			return p.request(wire.RCFlush, 0, 0, p.fethFor(wire.FETH{Placement: 1}, 0, 8, p.b.key))
		}), nak: 0x61, event: reqErr},
	{what: "persistent FLUSH not allowed", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCFlush, 0, 0, p.fethFor(wire.FETH{Placement: 3}, 0, 8, p.b.key))
	}), nak: 0x61, event: reqErr},
	{what: "persistent FLUSH of memory that is not persistent", opts: []option{withAccess(verbs.AccessRemote | verbs.AccessFlushGlobal | verbs.AccessFlushPersistent)},
		pkts: only(func(p *pair) *wire.Packet {
			return p.request(wire.RCFlush, 0, 0, p.fethFor(wire.FETH{Placement: 2}, 0, 8, p.b.key))
		}), nak: 0x62, event: accErr},
	{what: "FLUSH without permission", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCFlush, 0, 0, p.fethFor(wire.FETH{Placement: 1}, 0, 8, p.key(allAccess&^verbs.AccessFlushGlobal)))
	}), nak: 0x62, event: accErr},
	{what: "FLUSH with an unknown key", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCFlush, 0, 0, p.fethFor(wire.FETH{Placement: 1}, 0, 8, 0xbad))
	}), nak: 0x62, event: accErr},
	{what: "FLUSH of a region with an unknown key", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCFlush, 0, 0, p.fethFor(wire.FETH{Placement: 1, Selectivity: 1}, 0, 8, 0xbad))
	}), nak: 0x62, event: accErr},
	{what: "FLUSH beyond the region", pkts: only(func(p *pair) *wire.Packet {
		return p.request(wire.RCFlush, 0, 0, p.fethFor(wire.FETH{Placement: 1}, 1, regionBytes, p.b.key))
	}), nak: 0x62, event: accErr},
}

// fethFor fills in the headers of a FLUSH of n bytes.
func (p *pair) fethFor(h wire.FETH, remote, n int, key uint32) func(b []byte) {
	return func(b []byte) {
		h.Put(b[wire.BTHLen:])
		wire.RETH{VA: p.b.base + uint64(remote), RKey: key, Length: uint32(n)}.Put(b[wire.BTHLen+wire.FETHLen:])
	}
}

// unpadded removes the padding of a packet.
func (p *pair) unpadded(pkt *wire.Packet) *wire.Packet {
	raw := append([]byte{}, pkt.Raw[:len(pkt.Raw)-int(pkt.BTH.Pad)]...)
	raw[1] &^= 3 << 4
	require.Equal(p.t, wire.DropNone, pkt.Parse(raw))
	return pkt
}

func TestRefusals(t *testing.T) {
	for _, r := range refusals {
		t.Run(r.what, func(t *testing.T) {
			p := connect(t, r.opts...)
			p.b.recv(9, 32768, 2000)
			p.b.recv(10, 32768, 2000)
			if r.setup != nil {
				r.setup(p)
			}
			pkts := r.pkts(p)
			before := append([]byte{}, p.b.buf...)
			p.deliver(p.b, pkts[:len(pkts)-1]...)
			p.drain(p.b)
			expected := p.b.responder.recv.Expected()
			p.deliver(p.b, pkts[len(pkts)-1])
			require.Equal(t, verbs.StateErr, p.b.State())
			require.Equal(t, expected, p.b.responder.recv.Expected(), "the PSN does not advance")
			require.Equal(t, []string{fmt.Sprintf("ACKNOWLEDGE %d %02x msn=0", r.psn, uint8(r.nak))}, p.describePackets(p.b, p.drain(p.b)))
			if len(pkts) == 1 {
				require.Equal(t, before, p.b.buf, "no memory changed")
			}
			if r.held != 0 {
				require.Empty(t, p.b.raised())
				require.Equal(t, fmt.Sprintf("9 %v", r.held), p.b.takeCompletions()[0])
			} else {
				require.NotEmpty(t, p.b.whys[0].Event)
				require.Equal(t, []verbs.EventType{r.event}, p.b.raised())
				require.Equal(t, []string{"9 WR_FLUSH_ERR", "10 WR_FLUSH_ERR"}, p.b.takeCompletions())
			}
			// In ERR the responder does not respond any more.
			require.Equal(t, wire.DropQPState, p.deliver(p.b, pkts...))
			require.Empty(t, p.drain(p.b))
		})
	}
}

// TestRemoteAccessThroughAWindow checks that a window of this queue pair is valid like a region
// until it is invalidated, also within a message.
func TestRemoteAccessThroughAWindow(t *testing.T) {
	p := connect(t)
	key := p.window(p.b.Num())
	write := p.write(1, 0, 0, 600)
	write.RKey = key
	p.a.post(p.now, write, write)
	pkts := p.drain(p.a)
	p.deliver(p.b, pkts[:5]...)
	require.Equal(t, NoFault, p.b.mem.Invalidate(key, p.b.Num()))
	p.deliver(p.b, pkts[5])
	require.Equal(t, "ACKNOWLEDGE 5 62 msn=1", p.describePackets(p.b, p.drain(p.b))[0])
}

// TestZeroLengthWithBogusKey checks that a write or read of 0 bytes needs no valid key.
func TestZeroLengthWithBogusKey(t *testing.T) {
	p := connect(t)
	for i, op := range []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRRDMARead} {
		p.a.post(p.now, verbs.SendWR{WRID: uint64(i), Opcode: op, Flags: verbs.SendSignaled, RKey: 0xbad, RemoteAddr: 3,
			SGList: []verbs.SGE{{LKey: 0xbad}}})
	}
	p.exchange()
	require.Equal(t, []string{"0 RDMA_WRITE len=0", "1 RDMA_READ len=0"}, p.a.takeCompletions())
}

// TestBadLocalMemory checks invalid local memory: LOC_PROT_ERR after the earlier requests; RC is in
// ERR, UC and UD in SQE, with their receives intact.
func TestBadLocalMemory(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		for what, list := range map[string]func(p *pair) []verbs.SGE{
			"key":    func(p *pair) []verbs.SGE { return []verbs.SGE{{Addr: p.a.base, Length: 8, LKey: 0xbad}} },
			"bounds": func(p *pair) []verbs.SGE { return []verbs.SGE{p.a.sge(regionBytes-4, 8)} },
			"second": func(p *pair) []verbs.SGE { return []verbs.SGE{p.a.sge(0, 8), {Addr: 0, Length: 8, LKey: p.a.key}} },
		} {
			t.Run(fmt.Sprint(typ, " ", what), func(t *testing.T) {
				p := connect(t, ofType(typ))
				p.a.recv(8, 0, 100)
				p.b.recv(9, 0, 100)
				good, bad := p.toPeer(p.send(1, 0, 8)), p.toPeer(p.send(2, 0, 8))
				bad.SGList = list(p)
				bad.Flags = 0 // errors complete also if unsignaled
				p.a.post(p.now, good, bad, p.toPeer(p.send(3, 0, 8)))
				p.exchange()
				want := []string{"1 SEND len=8", "2 LOC_PROT_ERR", "3 WR_FLUSH_ERR"}
				if typ == verbs.RC {
					want = append(want, "8 WR_FLUSH_ERR")
				}
				require.Equal(t, want, p.a.takeCompletions())
				if typ == verbs.RC {
					require.Equal(t, verbs.StateErr, p.a.State())
					return
				}
				require.Equal(t, verbs.StateSQE, p.a.State())
				p.a.post(p.now, p.toPeer(p.send(4, 0, 8)))
				require.Equal(t, []string{"4 WR_FLUSH_ERR"}, p.a.takeCompletions(), "posted in SQE")
				_, recvs := p.a.Queued()
				require.Equal(t, 1, recvs)
				require.NoError(t, p.modify(p.a, verbs.StateRTS))
				p.b.recv(10, 0, 100)
				p.a.post(p.now, p.toPeer(p.send(5, 0, 8)))
				p.exchange()
				require.Equal(t, []string{"5 SEND len=8"}, p.a.takeCompletions())
			})
		}
	}
}

// toPeer makes a request a datagram to b, for queue pairs that need that.
func (p *pair) toPeer(wr verbs.SendWR) verbs.SendWR {
	path := wire.Path{Dst: p.b.addr}
	wr.AH, wr.RemoteQPN, wr.RemoteQKey = &handle{path: path}, p.b.Num(), 0x1234
	return wr
}

// TestSendFromReadOnlyMemory checks that sent memory needs no write permission, in one element or
// many.
func TestSendFromReadOnlyMemory(t *testing.T) {
	p := connect(t)
	key := p.a.mem.add(p.a.base, p.a.buf, 0)
	p.b.recv(8, 0, 2000)
	p.b.recv(9, 0, 2000)
	one, many := p.send(1, 0, 600), p.send(2, 0, 600)
	many.SGList = []verbs.SGE{p.a.sge(0, 100), p.a.sge(100, 500)}
	for _, wr := range []*verbs.SendWR{&one, &many} {
		for i := range wr.SGList {
			wr.SGList[i].LKey = key
		}
	}
	copy(p.a.buf[590:], "the end")
	p.a.post(p.now, one, many)
	p.exchange()
	require.Equal(t, []string{"1 SEND len=600", "2 SEND len=600"}, p.a.takeCompletions())
	require.Equal(t, p.a.buf[:600], p.b.buf[:600])
}

// TestBadMemoryForResults checks that read and atomic results without writable memory are
// LOC_PROT_ERR.
func TestBadMemoryForResults(t *testing.T) {
	for _, kind := range []string{"read", "atomic"} {
		p := connect(t)
		wr := p.read(1, 0, 0, 8)
		if kind == "atomic" {
			wr = p.fetchAdd(1, 0, 0, 1)
		}
		wr.SGList = []verbs.SGE{{Addr: p.a.base, Length: 8, LKey: p.a.mem.add(p.a.base, p.a.buf, verbs.AccessRemote)}}
		p.a.post(p.now, wr, p.write(2, 0, 0, 8))
		p.exchange()
		require.Equal(t, []string{"1 LOC_PROT_ERR", "2 WR_FLUSH_ERR"}, p.a.takeCompletions())
	}
}

// TestFlushOnErr checks that Modify to ERR flushes all requests in order, once, that later posts
// are flushed as well, and that the receive in use is first.
func TestFlushOnErr(t *testing.T) {
	p := connect(t)
	for i := range uint64(3) {
		p.b.recv(i, 0, 600)
	}
	p.b.PostSend(p.now, []verbs.SendWR{{WRID: 10, Opcode: verbs.WRSend}, {WRID: 11, Opcode: verbs.WRSend}})
	p.deliver(p.b, p.request(wire.RCSendFirst, 0, 256, nil))
	p.drain(p.b)
	require.NoError(t, p.modify(p.b, verbs.StateErr))
	require.Equal(t, []string{"10 WR_FLUSH_ERR", "11 WR_FLUSH_ERR", "0 WR_FLUSH_ERR", "1 WR_FLUSH_ERR", "2 WR_FLUSH_ERR"}, p.b.takeCompletions())
	require.NoError(t, p.modify(p.b, verbs.StateErr))
	require.Empty(t, p.b.takeCompletions())
	p.b.post(p.now, verbs.SendWR{WRID: 12, Opcode: verbs.WRSend})
	p.b.recv(13, 0, 8)
	require.Equal(t, []bool{true, true}, p.b.solicited, "errors wake waiters for solicited completions")
	require.Equal(t, []string{"12 WR_FLUSH_ERR", "13 WR_FLUSH_ERR"}, p.b.takeCompletions())
	require.Equal(t, wire.DropQPState, p.deliver(p.b, p.request(wire.RCSendLast, 1, 8, nil)))
	require.Empty(t, p.drain(p.b))
}

// TestFlushAfterSuccess checks that requests executed before the error complete successfully.
func TestFlushAfterSuccess(t *testing.T) {
	p := connect(t)
	win := p.a.mem.window(p.a.key)
	p.a.post(p.now, p.write(1, 0, 0, 8), bind(2, p.a, win, 0, 8, 0), p.write(3, 0, 0, 8))
	p.drain(p.a)
	p.deliver(p.a, p.response(p.b, wire.RCAck, 0, 0x1f, nil))
	require.NoError(t, p.modify(p.a, verbs.StateErr))
	require.Equal(t, []string{"1 RDMA_WRITE len=8", "2 BIND_MW len=0", "3 WR_FLUSH_ERR"}, p.a.takeCompletions())
}

// TestPendingAckLeavesAfterErr checks that messages received before the error are acknowledged.
func TestPendingAckLeavesAfterErr(t *testing.T) {
	p := connect(t)
	p.b.recv(9, 0, 8)
	p.a.post(p.now, p.send(1, 0, 8))
	p.deliver(p.b, p.drain(p.a)...)
	require.NoError(t, p.modify(p.b, verbs.StateErr))
	p.deliver(p.a, p.drain(p.b)...)
	require.Equal(t, []string{"1 SEND len=8"}, p.a.takeCompletions())
}

// TestFlushWithSharedQueue checks that receives of a shared queue are not flushed, and that an
// event reports that no more will be consumed.
func TestFlushWithSharedQueue(t *testing.T) {
	p := connect(t, withSRQ)
	p.b.recv(1, 0, 600)
	p.b.recv(2, 0, 600)
	p.deliver(p.b, p.request(wire.RCSendFirst, 0, 256, nil))
	require.NoError(t, p.modify(p.b, verbs.StateErr))
	require.Equal(t, []string{"1 WR_FLUSH_ERR"}, p.b.takeCompletions(), "the one in use")
	require.Equal(t, []verbs.EventType{verbs.EventQPLastWQEReached}, p.b.raised())
	require.Equal(t, 1, p.b.srq.len())
}
