package sim_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/rnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// forger sends sealed packets that no adapter has built, from an address of its own or from that of
// an adapter.
type forger struct {
	t  *testing.T
	s  *sim.Sim
	to *end
}

// send sends raw packets, with a valid ICRC unless the given one is to be kept.
func (f *forger) send(from *memory.Conn, pkts ...[]byte) {
	b := link.NewBatch(1 << 20)
	for _, p := range pkts {
		if len(p) < wire.MinPacketLen {
			continue // the network carries packets only
		}
		require.True(f.t, b.Append(&wire.Path{Dst: f.to.dev.Addr()}, p))
	}
	require.NoError(f.t, from.WriteBatch(b))
}

// packet returns a packet for the victim's queue pair.
func (f *forger) packet(op wire.Opcode, psn uint32, payload int, change func(h *wire.BTH, ext []byte)) []byte {
	info := op.Info()
	h := wire.BTH{Opcode: op, PKey: wire.DefaultPKey, DestQPN: f.to.qp.Num(), PSN: wire.PSN(psn), AckReq: true}
	b := make([]byte, info.HeaderLen+payload+wire.ICRCLen)
	for i := range payload {
		b[info.HeaderLen+i] = 0xee
	}
	if info.RETH {
		wire.RETH{RKey: f.to.mr.RKey(), Length: uint32(payload)}.Put(b[wire.BTHLen:])
	}
	if info.AtomicETH {
		wire.AtomicETH{RKey: f.to.mr.RKey(), SwapAdd: 1}.Put(b[wire.BTHLen:])
	}
	if change != nil {
		change(&h, b[wire.BTHLen:])
	}
	h.Put(b)
	return b
}

// attachForeign attaches an end that is not an adapter.
func attachForeign(t *testing.T, s *sim.Sim) *memory.Conn {
	c, err := s.Network().Attach(netip.MustParseAddrPort("10.6.6.6:4791"), memory.Options{})
	require.NoError(t, err)
	return c
}

// TestForgedPackets sends single packets with one invalid property to a connected queue pair that
// has just received a message and whose PSN is known.
func TestForgedPackets(t *testing.T) {
	rkey := func(change func(h *wire.RETH)) func(*wire.BTH, []byte) {
		return func(_ *wire.BTH, ext []byte) {
			h := wire.RETH{VA: binary.BigEndian.Uint64(ext), RKey: binary.BigEndian.Uint32(ext[8:]), Length: binary.BigEndian.Uint32(ext[12:])}
			change(&h)
			h.Put(ext)
		}
	}
	for _, test := range []struct {
		name     string
		stranger bool // sent from another address than the peer's
		op       wire.Opcode
		psn      int // from the expected one
		change   func(h *wire.BTH, ext []byte)
		drop     string // counted reason, or
		state    verbs.QPState
	}{
		{"wrong source, all else right", true, wire.RCWriteOnly, 0, nil, "wrong_source", verbs.StateRTS},
		{"wrong source, send", true, wire.RCSendOnly, 0, nil, "wrong_source", verbs.StateRTS},
		{"wrong source, atomic", true, wire.RCFetchAdd, 0, nil, "wrong_source", verbs.StateRTS},
		{"wrong source, acknowledgement", true, wire.RCAck, 0, nil, "wrong_source", verbs.StateRTS},
		{"unknown QPN", false, wire.RCWriteOnly, 0, func(h *wire.BTH, _ []byte) { h.DestQPN ^= 0x5555 }, "unknown_qpn", verbs.StateRTS},
		{"other partition", false, wire.RCWriteOnly, 0, func(h *wire.BTH, _ []byte) { h.PKey = 0x8001 }, "bad_pkey", verbs.StateRTS},
		{"other transport", false, wire.UCWriteOnly, 0, nil, "wrong_transport", verbs.StateRTS},
		{"datagram", false, wire.UDSendOnly, 0, nil, "wrong_transport", verbs.StateRTS},
		{"other version", false, wire.RCWriteOnly, 0, func(h *wire.BTH, _ []byte) { h.TVer = 3 }, "bad_version", verbs.StateRTS},
		{"reserved opcode", false, wire.RCWriteOnly, 0, func(h *wire.BTH, _ []byte) { h.Opcode = 0x1f }, "bad_opcode", verbs.StateRTS},
		{"pad without payload", false, wire.RCReadRequest, 0, func(h *wire.BTH, _ []byte) { h.Pad = 3 }, "bad_pad", verbs.StateRTS},
		{"PSN far ahead", false, wire.RCWriteOnly, 1000, nil, "out_of_sequence", verbs.StateRTS},
		{"PSN far behind", false, wire.RCWriteOnly, -1000, nil, "duplicate", verbs.StateRTS},
		{"old atomic", false, wire.RCFetchAdd, -1000, nil, "unknown_replay", verbs.StateRTS},
		{"old read", false, wire.RCReadRequest, -1000, nil, "unknown_replay", verbs.StateRTS},
		{"acknowledgement of nothing", false, wire.RCAck, 0, nil, "ghost_response", verbs.StateRTS},
		{"read response to nothing", false, wire.RCReadRespOnly, 0, nil, "ghost_response", verbs.StateRTS},

		// For the following ones the specification requires a NAK and the error state.
		{"wrong or stale rkey", false, wire.RCWriteOnly, 0, rkey(func(h *wire.RETH) { h.RKey ^= 0x100 }), "", verbs.StateErr},
		{"rkey of another variant", false, wire.RCWriteOnly, 0, rkey(func(h *wire.RETH) { h.RKey ^= 1 }), "", verbs.StateErr},
		{"rkey 0", false, wire.RCWriteOnly, 0, rkey(func(h *wire.RETH) { h.RKey = 0 }), "", verbs.StateErr},
		{"out of range", false, wire.RCWriteOnly, 0, rkey(func(h *wire.RETH) { h.VA = regionSize - 8 }), "", verbs.StateErr},
		{"address wraps around", false, wire.RCWriteOnly, 0, rkey(func(h *wire.RETH) { h.VA = 1<<64 - 8 }), "", verbs.StateErr},
		{"read of more than there is", false, wire.RCReadRequest, 0, rkey(func(h *wire.RETH) { h.Length = regionSize + 1 }), "", verbs.StateErr},
		{"read of 4 GiB", false, wire.RCReadRequest, 0, rkey(func(h *wire.RETH) { h.Length = 1<<32 - 1 }), "", verbs.StateErr},
		{"longer than announced", false, wire.RCWriteOnly, 0, rkey(func(h *wire.RETH) { h.Length = 4 }), "", verbs.StateErr},
		{"middle of nothing", false, wire.RCWriteMiddle, 0, nil, "", verbs.StateErr},
		{"invalidate of nothing", false, wire.RCSendOnlyInv, 0, nil, "", verbs.StateErr},
		{"misaligned atomic", false, wire.RCCmpSwap, 0, func(_ *wire.BTH, ext []byte) { ext[7] = 4 }, "", verbs.StateErr},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := sim.New(1)
			a, b := newEnd(t, s, sim.DeviceOptions{}), newEnd(t, s, sim.DeviceOptions{})
			require.NoError(t, s.Connect(sim.Endpoint{Device: a.dev, QP: a.qp, PSN: 5000}, sim.Endpoint{Device: b.dev, QP: b.qp, PSN: 9000}))
			b.fill()
			before := bytes.Clone(b.mr.Bytes())
			from := a.dev.Port()
			if test.stranger {
				from = attachForeign(t, s)
			}
			_, err := b.qp.PostRecv([]verbs.RecvWR{{WRID: 1}})
			require.NoError(t, err)
			f := &forger{t, s, b}
			payload := 16
			if _, most := test.op.Info().PayloadRange(256); most == 0 {
				payload = 0
			}
			f.send(from, f.packet(test.op, uint32(5000+test.psn), payload, test.change))
			require.True(t, s.Run(nil))

			require.True(t, bytes.Equal(before, b.mr.Bytes()), "memory has changed")
			require.Equal(t, test.state, b.qp.State())
			require.Equal(t, verbs.StateRTS, a.qp.State())
			if test.drop != "" {
				require.Equal(t, map[string]uint64{test.drop: 1}, b.dev.Stats().Drops)
				require.Empty(t, b.wcs)
				require.LessOrEqual(t, b.dev.Sent.Packets, uint64(1), "costs one answer at most")
				return
			}
			require.EqualValues(t, 1, b.dev.Sent.NAKs)
			require.EqualValues(t, 1, b.dev.Sent.Packets)
			if test.state == verbs.StateErr { // other queue pairs are unaffected
				require.Len(t, b.wcs, 1)
			}
		})
	}
}

// TestEveryDamagedBit inverts every bit of a packet that would write memory. The ICRC covers all of
// them except BTH byte 4, where switches mark congestion.
func TestEveryDamagedBit(t *testing.T) {
	s := sim.New(1)
	a, b := newEnd(t, s, sim.DeviceOptions{}), newEnd(t, s, sim.DeviceOptions{})
	require.NoError(t, s.Connect(sim.Endpoint{Device: a.dev, QP: a.qp, PSN: 5000}, sim.Endpoint{Device: b.dev, QP: b.qp, PSN: 9000}))
	f := &forger{t, s, b}
	pkt := f.packet(wire.RCWriteOnly, 5000, 16, nil)
	zero := make([]byte, regionSize)
	for bit := range 8 * len(pkt) {
		if bit/8 == 4 {
			continue
		}
		batch := link.NewBatch(1 << 16)
		require.True(t, batch.Append(&wire.Path{Dst: b.dev.Addr()}, pkt))
		batch.Corrupt(0, bit)
		require.NoError(t, a.dev.Port().WriteBatch(batch))
		require.True(t, s.Run(nil))
		require.True(t, bytes.Equal(zero, b.mr.Bytes()), "bit %d was not noticed", bit)
		drops := uint64(0)
		for _, n := range b.dev.Stats().Drops {
			drops += n
		}
		require.EqualValues(t, b.dev.Received.Packets, drops, "bit %d", bit)
		require.Zero(t, b.dev.Sent.Packets, "bit %d", bit)
	}
	require.Greater(t, b.dev.Stats().Drops["bad_icrc"], uint64(300))
	f.send(a.dev.Port(), pkt)
	require.True(t, s.Run(nil))
	require.False(t, bytes.Equal(zero, b.mr.Bytes()), "the packet itself is good")
}

// TestForgedDatagrams sends datagrams that a UD queue pair must drop.
func TestForgedDatagrams(t *testing.T) {
	s := sim.New(1)
	b := newEnd(t, s, sim.DeviceOptions{})
	ud, err := b.pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: b.cq, RecvCQ: b.cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 4, MaxRecvSGE: 1}})
	require.NoError(t, err)
	require.NoError(t, verbs.ActivateUD(ud, 7, 0))
	mr, err := b.pd.RegMR(make([]byte, 200), verbs.AccessLocalWrite)
	require.NoError(t, err)
	_, err = ud.PostRecv([]verbs.RecvWR{{WRID: 1, SGList: []verbs.SGE{mr.SGE(0, 100)}}})
	require.NoError(t, err)

	b.qp = ud
	f := &forger{t, s, b}
	from := attachForeign(t, s)
	datagram := func(qkey uint32, payload int) []byte {
		return f.packet(wire.UDSendOnly, 0, payload, func(_ *wire.BTH, ext []byte) { wire.DETH{QKey: qkey, SrcQPN: 5}.Put(ext) })
	}
	f.send(from, datagram(8, 16), datagram(0, 16), datagram(0x80000007, 16), datagram(7, 61), f.packet(wire.RCSendOnly, 0, 16, nil))
	require.True(t, s.Run(nil))
	require.Equal(t, map[string]uint64{"bad_qkey": 3, "too_big_for_buffer": 1, "wrong_transport": 1}, b.dev.Stats().Drops)
	require.Empty(t, b.wcs)
	require.True(t, bytes.Equal(mr.Bytes(), make([]byte, 200)))
	require.Zero(t, b.dev.Sent.Packets)

	f.send(from, datagram(7, 60))
	require.True(t, s.Run(nil))
	require.Len(t, b.wcs, 1, "the receive was not lost")
}

// TestReplayedPackets records all packets of a connection that wrote, sent, read and added, and
// sends them again, in order, out of order and repeatedly, from the peer's own address. The memory,
// modified since, does not change.
func TestReplayedPackets(t *testing.T) {
	s := sim.New(1)
	a, b := connectPair(t, s, sim.DeviceOptions{}, sim.DeviceOptions{})
	var recorded [][]byte
	a.dev.OnSend = func(_ *wire.Path, pkt []byte) { recorded = append(recorded, bytes.Clone(pkt)) }
	a.fill()
	_, err := b.qp.PostRecv([]verbs.RecvWR{
		{WRID: 1, SGList: []verbs.SGE{b.mr.SGE(20_000, 10_000)}}, {WRID: 2, SGList: []verbs.SGE{b.mr.SGE(30_000, 10_000)}}})
	require.NoError(t, err)
	for i, op := range []verbs.WROpcode{
		verbs.WRRDMAWrite, verbs.WRSend, verbs.WRRDMARead, verbs.WRAtomicFetchAdd, verbs.WRAtomicCmpSwap, verbs.WRRDMAWriteWithImm,
	} {
		wr := verbs.SendWR{WRID: uint64(i), Opcode: op, Flags: verbs.SendSignaled, SGList: []verbs.SGE{a.mr.SGE(0, 9000)},
			RKey: b.mr.RKey(), CompareAdd: 1, Swap: 2}
		if op == verbs.WRAtomicFetchAdd || op == verbs.WRAtomicCmpSwap {
			wr.SGList, wr.RemoteAddr = []verbs.SGE{a.mr.SGE(0, 8)}, 60_000
		}
		_, err := a.qp.PostSend([]verbs.SendWR{wr})
		require.NoError(t, err)
	}
	require.True(t, s.Run(func() bool { return len(a.wcs) == 6 && len(b.wcs) == 2 }))
	a.dev.OnSend = nil
	b.fill()
	before := bytes.Clone(b.mr.Bytes())
	own := bytes.Clone(a.mr.Bytes())

	f := &forger{t, s, b}
	r := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		f.send(a.dev.Port(), recorded...)
		s.RunFor(time.Millisecond)
		r.Shuffle(len(recorded), func(i, j int) { recorded[i], recorded[j] = recorded[j], recorded[i] })
	}
	require.True(t, bytes.Equal(before, b.mr.Bytes()), "the victim's memory has changed")
	require.True(t, bytes.Equal(own, a.mr.Bytes()), "the memory of the one in whose name it was done has changed")
	require.Equal(t, verbs.StateRTS, a.qp.State())
	require.Equal(t, verbs.StateRTS, b.qp.State())
	require.Len(t, b.wcs, 2)
	require.NotZero(t, b.dev.Stats().Drops["duplicate"])

	a.write(t, 99, b, 5000)
	require.True(t, s.Run(func() bool { return len(a.wcs) == 7 }), "the connection works on")
	require.Equal(t, verbs.WCSuccess, a.wcs[6].Status)
}

// TestRandomPackets sends random bytes, random packets, and recorded packets with random changes,
// from another address and from the peer's. Memory does not change, and only the addressed queue
// pairs are affected.
func TestRandomPackets(t *testing.T) {
	const rounds, each = 60, 50
	for seed := range uint64(rounds) {
		s := sim.New(seed)
		a, b := connectPair(t, s, sim.DeviceOptions{}, sim.DeviceOptions{})
		c := newEnd(t, s, sim.DeviceOptions{})
		connectAlso(t, s, c, b)
		a.fill()
		b.fill()
		before, own := bytes.Clone(b.mr.Bytes()), bytes.Clone(a.mr.Bytes())
		r := rand.New(rand.NewPCG(seed, 2))
		f := &forger{t, s, b}
		from := []*memory.Conn{a.dev.Port(), attachForeign(t, s)}
		for range each {
			f.send(from[r.IntN(2)], randomPacket(r, b.qp.Num()))
			s.RunFor(time.Microsecond)
		}
		s.RunFor(time.Second)
		require.True(t, bytes.Equal(before, b.mr.Bytes()), "seed %d: memory has changed", seed)
		require.True(t, bytes.Equal(own, a.mr.Bytes()), "seed %d: memory has changed", seed)
		stats := b.dev.Stats()
		drops := uint64(0)
		for _, n := range stats.Drops {
			drops += n
		}
		require.NotZero(t, drops)
		require.LessOrEqual(t, b.dev.Sent.Packets, b.dev.Received.Packets, "seed %d: more answers than questions", seed)

		c.write(t, 1, b, 1000)
		require.True(t, s.Run(func() bool { return len(c.wcs) == 1 }))
		require.Equal(t, verbs.WCSuccess, c.wcs[0].Status, "seed %d: the second connection suffered", seed)
	}
}

// connectAlso connects a third end to another queue pair of b's adapter.
func connectAlso(t *testing.T, s *sim.Sim, c, b *end) {
	qp, err := b.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.cq, RecvCQ: b.cq, Cap: verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8}})
	require.NoError(t, err)
	require.NoError(t, s.Connect(sim.Endpoint{Device: c.dev, QP: c.qp}, sim.Endpoint{Device: b.dev, QP: qp}))
}

// randomPacket draws a packet, mostly with a valid opcode and the right queue pair, but never with
// an existing key.
func randomPacket(r *rand.Rand, qpn uint32) []byte {
	b := make([]byte, wire.MinPacketLen+r.IntN(300))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	if r.IntN(4) == 0 {
		return b
	}
	info := wire.Opcode(r.IntN(0x18)).Info()
	if info.HeaderLen+wire.ICRCLen > len(b) {
		return b
	}
	h := wire.BTH{Opcode: info.Opcode, PKey: wire.DefaultPKey, DestQPN: qpn, PSN: wire.PSN(r.Uint32() & wire.PSNMask), AckReq: r.IntN(2) == 0}
	h.Put(b)
	return b
}
