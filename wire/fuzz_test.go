package wire_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// addGolden adds every golden packet to a corpus.
func addGolden(t testing.TB, add func(d opened)) {
	for _, g := range goldenPackets {
		add(open(t, golden(t, g.name)))
	}
}

// FuzzParse checks that Parse never panics or writes, and that accepted packets are encoded to the
// same bytes except padding and reserved bits.
func FuzzParse(f *testing.F) {
	addGolden(f, func(d opened) { f.Add(d.pkt) })
	for _, g := range goldenFlushes(f) {
		f.Add(g)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := slices.Clone(raw)
		var p wire.Packet
		drop := p.Parse(raw)
		require.Equal(t, before, raw)
		require.Less(t, drop, wire.NumDrops)
		require.NotNil(t, p.Info)
		if drop != wire.DropNone {
			require.Nil(t, p.Payload)
			return
		}
		i := p.Info
		require.True(t, i.Valid)
		require.Equal(t, len(raw), i.HeaderLen+len(p.Payload)+int(p.BTH.Pad)+wire.ICRCLen)
		if i.Operation == wire.OpCNP {
			return // its flags are constant
		}
		body := raw[:len(raw)-wire.ICRCLen]
		clearReserved(body)
		if i.DETH {
			body[wire.BTHLen+4] = 0
		}
		if i.FETH {
			copy(body[wire.BTHLen:], []byte{0, 0, 0, body[wire.BTHLen+3] & 0x3F})
		}
		clear(body[len(body)-int(p.BTH.Pad):])
		require.Equal(t, body, encode(&p))
	})
}

// FuzzICRC checks that Put agrees with a bit-by-bit model, that Check finds any identification,
// and that the result explains an accepted ICRC.
func FuzzICRC(f *testing.F) {
	addGolden(f, func(d opened) {
		f.Add(d.src.Addr().AsSlice(), d.dst.Addr().AsSlice(), d.src.Port(), d.dst.Port(), d.id, d.pkt, uint32(1))
	})
	f.Fuzz(func(t *testing.T, srcIP, dstIP []byte, srcPort, dstPort, id uint16, pkt []byte, damage uint32) {
		a, ok := netip.AddrFromSlice(srcIP)
		b, okB := netip.AddrFromSlice(dstIP)
		a, b = a.Unmap(), b.Unmap()
		if !ok || !okB || a.Is4() != b.Is4() || len(pkt) < wire.MinPacketLen || len(pkt) > 65507 {
			t.Skip()
		}
		src, dst := netip.AddrPortFrom(a, srcPort), netip.AddrPortFrom(b, dstPort)
		pkt = slices.Clone(pkt)
		s := wire.NewICRC(src, dst)
		s.Put(pkt, id)
		require.Equal(t, slowICRC(datagram(src, dst, id, pkt)), icrcOf(pkt))

		result, got := s.Check(pkt, id)
		require.Equal(t, wire.ICRCExact, result)
		require.Equal(t, id, got)
		result, got = s.Check(pkt, ^id)
		if a.Is4() {
			require.Equal(t, wire.ICRCMember, result)
			require.Equal(t, id, got)
		} else {
			require.Equal(t, wire.ICRCExact, result)
		}

		for i := range 4 {
			pkt[len(pkt)-4+i] ^= byte(damage >> (8 * i))
		}
		switch result, got = s.Check(pkt, id); result {
		case wire.ICRCBad:
			require.NotZero(t, damage)
		case wire.ICRCExact:
			require.Zero(t, damage)
		case wire.ICRCMember:
			require.True(t, a.Is4())
			require.NotEqual(t, id, got)
			require.Equal(t, slowICRC(datagram(src, dst, got, pkt)), icrcOf(pkt))
		}
	})
}
