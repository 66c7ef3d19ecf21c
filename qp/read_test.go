package qp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestRetriedReadTakesAnyOpcode checks that after a retry the response may begin with FIRST or
// ONLY, or in the middle with MIDDLE or LAST, and is placed by PSN.
func TestRetriedReadTakesAnyOpcode(t *testing.T) {
	for _, begin := range []string{"anew", "in the middle"} {
		p := connect(t)
		for i := range 1000 {
			p.b.buf[i] = byte(i * 11)
		}
		p.a.post(p.now, p.read(1, 4096, 0, 1000))
		p.deliver(p.b, p.drain(p.a)...)
		resp := p.drain(p.b)
		require.Len(t, resp, 4)
		p.deliver(p.a, resp[0])
		require.Equal(t, wire.DropOutOfSequence, p.deliver(p.a, resp[2]))
		require.Equal(t, []string{"READ_REQUEST 1 @100+744 A"}, p.describePackets(p.a, p.drain(p.a)), "the rest, from what is missing")
		again := resp[1:]
		if begin == "anew" {
			p.deliver(p.b, p.readRequest(1, 256, 744, p.b.key))
			again = p.drain(p.b)
			require.Contains(t, p.describePacket(p.b, again[0]), "READ_RESPONSE_FIRST 1")
		}
		p.deliver(p.a, again...)
		require.Equal(t, []string{"1 RDMA_READ len=1000"}, p.a.takeCompletions())
		require.True(t, bytes.Equal(p.b.buf[:1000], p.a.buf[4096:5096]))
	}
}

// TestResponseToARequestAboutToBeRepeated checks that a response is accepted while its request
// waits to be retransmitted.
func TestResponseToARequestAboutToBeRepeated(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.write(1, 0, 4096, 8), p.read(2, 0, 0, 600), p.fetchAdd(3, 8192, 0, 1))
	p.deliver(p.b, p.drain(p.a)...)
	resp := p.drain(p.b)
	p.advanceToDeadline(p.a) // the timeout; no packet is built yet
	p.deliver(p.a, resp...)
	require.Equal(t, []string{"1 RDMA_WRITE len=8", "2 RDMA_READ len=600", "3 FETCH_ADD len=8"}, p.a.takeCompletions())
	require.Zero(t, p.a.rdOut)
	require.Empty(t, p.drain(p.a))
}

// TestResponseBehindALostOne checks that a response of a later request than the oldest shows that
// one is lost, which is requested again, for all combinations of kinds.
func TestResponseBehindALostOne(t *testing.T) {
	for _, kinds := range [][2]string{{"read", "atomic"}, {"atomic", "read"}, {"read", "read"}, {"atomic", "atomic"}} {
		t.Run(kinds[0]+" lost before "+kinds[1], func(t *testing.T) {
			p := connect(t)
			request := func(id uint64, kind string) verbs.SendWR {
				if kind == "read" {
					return p.read(id, int(id)*1024, 64, 8)
				}
				return p.fetchAdd(id, int(id)*1024, 0, 1)
			}
			p.a.post(p.now, p.write(1, 0, 4096, 8), request(2, kinds[0]), request(3, kinds[1]))
			req := p.drain(p.a)
			p.deliver(p.b, req...)
			resp := p.drain(p.b)
			require.Len(t, resp, 2)
			require.Equal(t, wire.DropOutOfSequence, p.deliver(p.a, resp[1]))
			require.Equal(t, []string{"1 RDMA_WRITE len=8"}, p.a.takeCompletions(), "it acknowledges what is before the lost one")
			require.Equal(t, p.describePackets(p.a, req[1:]), p.describePackets(p.a, p.drain(p.a)))
			p.deliver(p.a, resp...)
			require.Len(t, p.a.takeCompletions(), 2)
		})
	}
}

// TestAckBehindALostResponse checks that an ACK after an unanswered read shows that its response is
// lost.
func TestAckBehindALostResponse(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.read(1, 0, 0, 8), p.write(2, 0, 0, 8))
	p.deliver(p.b, p.drain(p.a)...)
	resp := p.drain(p.b)
	require.Len(t, resp, 2)
	p.deliver(p.a, resp[1])
	require.Empty(t, p.a.takeCompletions())
	require.Len(t, p.drain(p.a), 2, "both are sent again")
	p.deliver(p.a, resp...)
	require.Len(t, p.a.takeCompletions(), 2)
}

// TestDuplicateResponses checks that a duplicate response is placed once.
func TestDuplicateResponses(t *testing.T) {
	p := connect(t)
	p.b.buf[0] = 9
	p.a.post(p.now, p.read(1, 0, 0, 600), p.fetchAdd(2, 4096, 0, 1))
	p.deliver(p.b, p.drain(p.a)...)
	resp := p.drain(p.b)
	require.Len(t, resp, 4)
	p.deliver(p.a, resp[0])
	p.a.buf[0] = 1
	require.Equal(t, wire.DropDuplicate, p.deliver(p.a, resp[0]))
	require.EqualValues(t, 1, p.a.buf[0])
	p.deliver(p.a, resp[1], resp[2])
	require.Equal(t, wire.DropDuplicate, p.deliver(p.a, resp[2]), "of a read that is complete")
	p.deliver(p.a, resp[3])
	require.Equal(t, wire.DropDuplicate, p.deliver(p.a, resp[3]))
	require.Len(t, p.a.takeCompletions(), 2)
}

// TestBadResponses checks that a response that contradicts its request is BAD_RESP_ERR.
func TestBadResponses(t *testing.T) {
	for _, c := range []struct {
		what string
		wr   func(p *pair) verbs.SendWR
		resp func(p *pair) *wire.Packet
	}{
		{"read response to a write",
			func(p *pair) verbs.SendWR { return p.write(1, 0, 0, 8) },
			func(p *pair) *wire.Packet { return p.response(p.b, wire.RCReadRespOnly, 0, 0x1f, make([]byte, 8)) }},
		{"atomic response to a write",
			func(p *pair) verbs.SendWR { return p.write(1, 0, 0, 8) },
			func(p *pair) *wire.Packet { return p.response(p.b, wire.RCAtomicAck, 0, 0x1f, nil) }},
		{"atomic response to a read",
			func(p *pair) verbs.SendWR { return p.read(1, 0, 0, 8) },
			func(p *pair) *wire.Packet { return p.response(p.b, wire.RCAtomicAck, 0, 0x1f, nil) }},
		{"read response to an atomic",
			func(p *pair) verbs.SendWR { return p.fetchAdd(1, 0, 0, 8) },
			func(p *pair) *wire.Packet { return p.response(p.b, wire.RCReadRespOnly, 0, 0x1f, make([]byte, 8)) }},
		{"short read response",
			func(p *pair) verbs.SendWR { return p.read(1, 0, 0, 8) },
			func(p *pair) *wire.Packet { return p.response(p.b, wire.RCReadRespOnly, 0, 0x1f, make([]byte, 7)) }},
		{"long read response",
			func(p *pair) verbs.SendWR { return p.read(1, 0, 0, 8) },
			func(p *pair) *wire.Packet { return p.response(p.b, wire.RCReadRespOnly, 0, 0x1f, make([]byte, 9)) }},
		{"read response of another MTU",
			func(p *pair) verbs.SendWR { return p.read(1, 0, 0, 600) },
			func(p *pair) *wire.Packet { return p.response(p.b, wire.RCReadRespFirst, 0, 0x1f, make([]byte, 512)) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := connect(t)
			p.a.post(p.now, c.wr(p), p.write(2, 0, 0, 8))
			p.drain(p.a)
			p.deliver(p.a, c.resp(p))
			require.Equal(t, []string{"1 BAD_RESP_ERR", "2 WR_FLUSH_ERR"}, p.a.takeCompletions())
			require.Equal(t, verbs.StateErr, p.a.State())
			require.Equal(t, make([]byte, 16), p.a.buf[:16], "nothing was placed")
		})
	}
}

// TestMaxRdAtomicHoldsTheQueue checks that at most max_rd_atomic reads and atomics are outstanding,
// and that the next one blocks the send queue.
func TestMaxRdAtomicHoldsTheQueue(t *testing.T) {
	for limit := uint8(1); limit <= 4; limit++ {
		p := connect(t, withRdAtomic(limit, 4))
		var wrs []verbs.SendWR
		for i := range uint64(6) {
			if i%2 == 0 {
				wrs = append(wrs, p.read(i, 0, 0, 300))
			} else {
				wrs = append(wrs, p.fetchAdd(i, 4096, 0, 1))
			}
		}
		wrs = append(wrs, p.write(6, 0, 8192, 8))
		p.a.post(p.now, wrs...)
		sent := 0
		for len(p.a.wcs) < len(wrs) {
			pkts := p.drain(p.a)
			sent += len(pkts)
			require.LessOrEqual(t, p.a.rdOut, uint32(limit))
			require.LessOrEqual(t, sent-len(p.a.wcs), int(limit)+1)
			for _, pkt := range pkts {
				p.deliver(p.b, pkt)
				p.deliver(p.a, p.drain(p.b)...)
			}
		}
		require.Len(t, p.a.takeCompletions(), len(wrs))
	}
}

// TestMaxRdAtomicZero checks that with max_rd_atomic 0 only reads and atomics are refused when
// posted.
func TestMaxRdAtomicZero(t *testing.T) {
	p := connect(t, withRdAtomic(0, 4))
	for _, wr := range []verbs.SendWR{p.read(1, 0, 0, 8), p.fetchAdd(1, 0, 0, 1), p.cmpSwap(1, 0, 0, 1, 1)} {
		_, err := p.a.PostSend(p.now, []verbs.SendWR{wr})
		require.ErrorIs(t, err, verbs.ErrInvalid)
	}
	p.a.post(p.now, p.write(1, 0, 0, 8))
}

// TestMaxDestRdAtomicZero checks that with max_dest_rd_atomic 0 the responder sends NAK 0x61.
func TestMaxDestRdAtomicZero(t *testing.T) {
	for _, kind := range []string{"read", "atomic"} {
		p := connect(t, withRdAtomic(4, 0))
		wr := p.read(1, 0, 0, 8)
		if kind == "atomic" {
			wr = p.fetchAdd(1, 0, 0, 1)
		}
		p.a.post(p.now, wr)
		p.exchange()
		require.Equal(t, []string{"1 REM_INV_REQ_ERR"}, p.a.takeCompletions())
		require.Zero(t, p.b.buf[0])
	}
}

// TestLongReadsInParts checks that long reads are requested in parts that fit in the receive
// buffer, that parts count against max_rd_atomic, and that they are one request for the program.
func TestLongReadsInParts(t *testing.T) {
	for _, limit := range []uint8{1, 4} {
		p := connect(t, withMTU(verbs.MTU1024), withRdAtomic(limit, 4))
		p.a.readPart, p.a.readLimit = 4<<10, 15<<10
		for i := range p.b.buf {
			p.b.buf[i] = byte(i * 31 >> 3)
		}
		p.a.post(p.now, p.read(1, 0, 100, 50_000), p.fetchAdd(2, 60_000, 0, 0))
		for len(p.a.wcs) < 2 {
			require.LessOrEqual(t, p.a.rdBytes, uint32(15<<10))
			require.LessOrEqual(t, p.a.rdOut, uint32(limit))
			pkts := p.drain(p.a)
			p.deliver(p.b, pkts...)
			resp := p.drain(p.b)
			require.NotEmpty(t, resp)
			require.LessOrEqual(t, len(resp), 15+1)
			p.deliver(p.a, resp...)
		}
		require.Equal(t, []string{"1 RDMA_READ len=50000", "2 FETCH_ADD len=8"}, p.a.takeCompletions())
		require.True(t, bytes.Equal(p.b.buf[100:50_100], p.a.buf[:50_000]))
	}
}

// TestPartsFitTheBuffer checks that the size of parts is computed from the receive buffer, in whole
// packets.
func TestPartsFitTheBuffer(t *testing.T) {
	for _, buffer := range []int{0, 1, 16 << 10, 208 << 10, 1 << 30} {
		for _, rd := range []uint8{0, 1, 2, 16, 128} {
			for mtu := verbs.MTU256; mtu <= verbs.MTU4096; mtu++ {
				p := connect(t, withMTU(mtu), withRdAtomic(rd, 1), withConfig(func(c *Config) { c.LocalBuffer = buffer }))
				require.Zero(t, p.a.readPart%p.a.mtu)
				require.NotZero(t, p.a.readPart)
				require.LessOrEqual(t, p.a.readPart, p.a.readLimit)
				require.LessOrEqual(t, p.a.readLimit, uint32(reliability.MaxWindow))
				if buffer >= 16<<10 {
					require.LessOrEqual(t, int64(p.a.readLimit), 2*int64(buffer))
				}
			}
		}
	}
}

// TestLostPartsOfARead checks that a read with lost parts is requested again from the first missing
// byte, part by part.
func TestLostPartsOfARead(t *testing.T) {
	p := connect(t, withMTU(verbs.MTU1024))
	p.a.readPart, p.a.readLimit = 4<<10, 16<<10
	for i := range p.b.buf {
		p.b.buf[i] = byte(i * 37 >> 2)
	}
	p.a.post(p.now, p.read(1, 0, 0, 60_000))
	for i := 0; len(p.a.wcs) == 0; i++ {
		p.deliver(p.b, p.drain(p.a)...)
		for j, pkt := range p.drain(p.b) {
			if (i+j)%7 != 3 {
				p.deliver(p.a, pkt)
			}
		}
		if p.a.una != p.a.top && p.a.next == p.a.top {
			p.advanceToDeadline(p.a)
		}
	}
	require.Equal(t, []string{"1 RDMA_READ len=60000"}, p.a.takeCompletions())
	require.True(t, bytes.Equal(p.b.buf[:60_000], p.a.buf[:60_000]))
}

// TestReadsOfASlowPeer checks that another adapter than softrnic gets small parts first, larger
// ones as it responds, and a single one after a timeout. Otherwise a slow peer would spend its time
// on responses that have been requested again.
func TestReadsOfASlowPeer(t *testing.T) {
	for _, known := range []bool{false, true} {
		p := connect(t, withMTU(verbs.MTU4096),
			withConfig(func(c *Config) { c.LocalBuffer = 1 << 20 }),
			withAttr(func(a *verbs.QPAttr) {
				a.MaxRdAtomic, a.MaxDestRdAtomic = 16, 16
				if known {
					a.AV.PeerBuffer = 1 << 20
				}
			}))
		const all = 4 << 20
		for _, n := range []*node{p.a, p.b} {
			n.base, n.buf = n.base<<1, make([]byte, all)
			n.key = n.mem.add(n.base, n.buf, allAccess)
		}
		p.a.post(p.now, p.read(1, 0, 0, all))
		asked := p.drain(p.a)
		if known {
			require.EqualValues(t, reliability.MaxWindow, p.a.rdBytes)
			continue
		}
		require.Len(t, asked, 1)
		require.LessOrEqual(t, p.a.rdBytes, uint32(reliability.DefaultWindow))
		for range 12 {
			p.deliver(p.b, asked...)
			p.deliver(p.a, p.drain(p.b)...)
			asked = p.drain(p.a)
		}
		require.Greater(t, len(asked), 1, "it has answered")
		p.advanceToDeadline(p.a)
		require.Len(t, p.drain(p.a), 1, "nothing arrived in time")
	}
}
