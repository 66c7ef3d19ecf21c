package rnic

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// intruder sends packets to a device that no adapter has built.
type intruder struct {
	t    *testing.T
	conn link.Conn
	to   wire.Path
	b    *link.Batch
}

func newIntruder(t *testing.T, to *Device) *intruder {
	conn, err := link.OpenUDP(link.Options{Addr: netip.MustParseAddrPort("127.77.0.1:0")})
	if err != nil { // a system with one loopback address
		t.Skip(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &intruder{t, conn, wire.Path{Dst: to.Addr()}, link.NewBatch(1 << 16)}
}

// write sends an RDMA write of 8 bytes, modified by change and sealed with a valid ICRC. If bit is
// not negative, it then inverts that bit.
func (i *intruder) write(h wire.BTH, r wire.RETH, bit int) {
	info := wire.RCWriteOnly.Info()
	p := i.b.Next(&i.to, info.HeaderLen+8+wire.ICRCLen)
	h.Put(p)
	r.Put(p[wire.BTHLen:])
	copy(p[info.HeaderLen:], "intruder")
	if bit >= 0 {
		i.b.Corrupt(0, bit)
	}
	require.NoError(i.t, i.conn.WriteBatch(i.b))
	i.b.Reset()
}

// TestForgedPackets sends packets that are valid in all respects but one. They are counted under
// their reason, and have no effect.
func TestForgedPackets(t *testing.T) {
	a, b := pair(t, Options{})
	idle := b.newQPInState(t, verbs.RC, verbs.StateInit)
	ud := b.newQPInState(t, verbs.UD, verbs.StateRTS)
	stranger := newIntruder(t, b.dev)
	before, _ := b.qp.Query()
	good := wire.BTH{Opcode: wire.RCWriteOnly, PKey: wire.DefaultPKey, DestQPN: b.qp.Num(), PSN: 100, AckReq: true}
	reth := wire.RETH{VA: b.mr.Addr(), RKey: b.mr.RKey(), Length: 8}
	for _, c := range []struct {
		reason wire.Drop
		bit    int
		change func(h *wire.BTH)
	}{
		{wire.DropWrongSource, -1, func(h *wire.BTH) {}},
		{wire.DropBadICRC, 250, func(h *wire.BTH) {}},
		{wire.DropUnknownQPN, -1, func(h *wire.BTH) { h.DestQPN = 0xfffffe }},
		{wire.DropUnknownQPN, -1, func(h *wire.BTH) { h.DestQPN = 0 }},
		{wire.DropUnknownQPN, -1, func(h *wire.BTH) { h.DestQPN = wire.QPNMulticast }},
		{wire.DropQPState, -1, func(h *wire.BTH) { h.DestQPN = idle.Num() }},
		{wire.DropWrongTransport, -1, func(h *wire.BTH) { h.DestQPN = ud.Num() }},
		{wire.DropBadPKey, -1, func(h *wire.BTH) { h.PKey = 0x1234 }},
		{wire.DropBadOpcode, -1, func(h *wire.BTH) { h.Opcode = 0x1f }},
		{wire.DropTruncated, -1, func(h *wire.BTH) { h.Opcode = wire.RCCmpSwap }},
	} {
		h := good
		c.change(&h)
		was := b.dev.Stats().Drops[c.reason.String()]
		stranger.write(h, reth, c.bit)
		for b.dev.Stats().Drops[c.reason.String()] == was {
			b.dev.Progress()
		}
	}
	after, _ := b.qp.Query()
	require.Equal(t, before, after)
	require.Equal(t, make([]byte, 8), b.mr.Bytes()[:8])
	checkTransfers(t, a, b, 10_000, 1)
}

// TestMalformedPackets sends random bytes of every length, and random corruptions of a peer's packets. Only the
// counters change.
func TestMalformedPackets(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	a, b := pair(t, Options{Impair: "corrupt 20% seed 3"})
	before, _ := b.qp.Query()
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(b.dev.Addr()))
	require.NoError(t, err)
	defer conn.Close()
	junk := make([]byte, 300)
	const n = 2000
	for i := range n {
		fill(junk, random.Uint64())
		if random.IntN(2) == 0 { // a packet that is processed further
			h := wire.BTH{Opcode: wire.Opcode(random.Uint32()), PKey: wire.DefaultPKey, DestQPN: b.qp.Num(), PSN: wire.PSN(random.Uint32() & wire.PSNMask)}
			h.Put(junk)
		}
		_, err := conn.Write(junk[:i%len(junk)])
		require.NoError(t, err)
		b.dev.Progress()
	}
	a.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite}) // after the junk
	a.poll1(t)
	before.RQPSN = (before.RQPSN + 1) & wire.PSNMask
	after, _ := b.qp.Query()
	require.Equal(t, before, after, "seed %d", seed)
	require.NotEmpty(t, b.dev.Stats().Drops)
	checkTransfers(t, a, b, 50_000, seed)
}
