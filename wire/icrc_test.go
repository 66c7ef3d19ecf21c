package wire_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire"
)

func TestSlowModel(t *testing.T) {
	require.Equal(t, uint32(0xCBF43926), slowCRC32([]byte("123456789")))
}

// icrcOf returns the last four bytes of a packet as a number.
func icrcOf(pkt []byte) uint32 { return binary.LittleEndian.Uint32(pkt[len(pkt)-wire.ICRCLen:]) }

// anyEnds draws the two ends of a flow.
func anyEnds(t *rapid.T) (src, dst netip.AddrPort) {
	v6 := rapid.Bool().Draw(t, "v6")
	end := func(name string) netip.AddrPort {
		port := rapid.Uint16().Draw(t, name+" port")
		if v6 {
			b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name)
			b[0] |= 0x20 // not an IPv4-mapped address
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b)), port)
		}
		b := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, name)
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b)), port)
	}
	return end("src"), end("dst")
}

// TestICRCAgainstModel compares Put with the bit-by-bit model over the whole datagram.
func TestICRCAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, dst := anyEnds(t)
		id := rapid.Uint16().Draw(t, "id")
		pkt := rapid.SliceOfN(rapid.Byte(), wire.MinPacketLen, 600).Draw(t, "packet")
		s := wire.NewICRC(src, dst)
		s.Put(pkt, id)
		require.Equal(t, slowICRC(datagram(src, dst, id, pkt)), icrcOf(pkt))
	})
}

// TestICRCEveryLength tests every length, so that the short path, hash/crc32 and both tables are
// used.
func TestICRCEveryLength(t *testing.T) {
	for _, f := range families {
		s := wire.NewICRC(f.src, f.dst)
		for n := wire.MinPacketLen; n < 1200; n++ {
			pkt := packetOfSize(n)
			s.Put(pkt, 0xBEEF)
			require.Equal(t, slowICRC(datagram(f.src, f.dst, 0xBEEF, pkt)), icrcOf(pkt), "%s %d", f.name, n)
		}
		for _, n := range []int{4112, 4128, 9000, 65507} {
			pkt := packetOfSize(n)
			s.Put(pkt, 1)
			require.Equal(t, slowICRC(datagram(f.src, f.dst, 1, pkt)), icrcOf(pkt), "%s %d", f.name, n)
		}
	}
}

// TestICRCPutParts checks that the parts of a packet may be in separate memory.
func TestICRCPutParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, dst := anyEnds(t)
		id := rapid.Uint16().Draw(t, "id")
		pkt := rapid.SliceOfN(rapid.Byte(), wire.MinPacketLen, 9000).Draw(t, "packet")
		icrc := len(pkt) - wire.ICRCLen
		head := rapid.IntRange(wire.BTHLen, icrc).Draw(t, "head")
		s := wire.NewICRC(src, dst)
		var got [wire.ICRCLen]byte
		s.PutParts(pkt[:head], pkt[head:icrc], got[:], id)
		s.Put(pkt, id)
		require.Equal(t, pkt[icrc:], got[:])
	})
}

// TestCheckRecoversEveryID checks that Check finds any identification at any length, and does not
// write.
func TestCheckRecoversEveryID(t *testing.T) {
	s := wire.NewICRC(families[0].src, families[0].dst)
	for _, n := range []int{16, 17, 24, 247, 248, 300, 1040, 4112, 65507} {
		pkt := packetOfSize(n)
		step := 1 + n/64
		for id := 0; id < 1<<16; id += step {
			s.Put(pkt, uint16(id))
			before := icrcOf(pkt)
			for _, asked := range []uint16{0, 0x1234, uint16(id)} {
				result, got := s.Check(pkt, asked)
				want := wire.ICRCMember
				if asked == uint16(id) {
					want = wire.ICRCExact
				}
				require.Equal(t, want, result, "length %d, id %d, want id %d", n, id, asked)
				require.EqualValues(t, id, got, "length %d, asked %d", n, asked)
			}
			require.Equal(t, before, icrcOf(pkt))
		}
	}
}

// TestCheckIPv6 checks that without an identification, in IPv6, exactly one ICRC is valid.
func TestCheckIPv6(t *testing.T) {
	s := wire.NewICRC(families[1].src, families[1].dst)
	pkt := packetOfSize(24)
	s.Put(pkt, 77)
	result, _ := s.Check(pkt, 0)
	require.Equal(t, wire.ICRCExact, result)
	for bit := range 32 {
		pkt[20+bit/8] ^= 1 << (bit % 8)
		result, id := s.Check(pkt, 0)
		require.Equal(t, wire.ICRCBad, result)
		require.Zero(t, id)
		pkt[20+bit/8] ^= 1 << (bit % 8)
	}
}

// TestCheckDetectsEveryBit checks that an inverted bit is detected, except in fields that the ICRC
// does not cover.
func TestCheckDetectsEveryBit(t *testing.T) {
	s := wire.NewICRC(families[0].src, families[0].dst)
	for _, n := range []int{24, 48, 276, 1040, 4112} {
		pkt := packetOfSize(n)
		s.Put(pkt, 0xC60A)
		for bit := range 8 * n {
			pkt[bit/8] ^= 1 << (bit % 8)
			want := wire.ICRCBad
			if bit/8 == 4 {
				want = wire.ICRCMember // FECN, BECN and reserved: switches may set them
			}
			result, _ := s.Check(pkt, 0)
			require.Equal(t, want, result, "length %d, bit %d", n, bit)
			pkt[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// TestCheckOfRandomDamage checks that at most one in 65536 random corruptions matches another
// identification.
func TestCheckOfRandomDamage(t *testing.T) {
	const tries = 1 << 20
	rng := rand.New(rand.NewPCG(1, 2))
	s := wire.NewICRC(families[0].src, families[0].dst)
	pkt := packetOfSize(24)
	accepted := 0
	for range tries {
		binary.LittleEndian.PutUint32(pkt[20:], rng.Uint32())
		if result, id := s.Check(pkt, 0); result != wire.ICRCBad {
			accepted++
			require.Equal(t, slowICRC(datagram(families[0].src, families[0].dst, id, pkt)), icrcOf(pkt))
		}
	}
	require.Positive(t, accepted)
	require.Less(t, accepted, 3*tries>>16)
}

func TestCheckOfShortPackets(t *testing.T) {
	s := wire.NewICRC(families[0].src, families[0].dst)
	for n := range wire.MinPacketLen {
		result, _ := s.Check(make([]byte, n), 0)
		require.Equal(t, wire.ICRCBad, result)
	}
}

// TestICRCKnowsItsFlow checks that the ICRC depends on each end of a flow, and on their order.
func TestICRCKnowsItsFlow(t *testing.T) {
	src, dst := families[0].src, families[0].dst
	pkt := packetOfSize(24)
	s := wire.NewICRC(src, dst)
	s.Put(pkt, 0)
	for _, other := range []wire.ICRC{
		wire.NewICRC(dst, src),
		wire.NewICRC(netip.AddrPortFrom(src.Addr(), 4790), dst),
		wire.NewICRC(src, netip.AddrPortFrom(dst.Addr(), 4790)),
		wire.NewICRC(netip.AddrPortFrom(src.Addr().Next().Next(), src.Port()), dst),
	} {
		result, _ := other.Check(pkt, 0)
		require.Equal(t, wire.ICRCBad, result)
	}
	mapped := func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
	}
	require.Equal(t, s, wire.NewICRC(mapped(src), mapped(dst)), "IPv4-mapped addresses are IPv4")
}

func TestICRCResultNames(t *testing.T) {
	require.Equal(t, "bad", wire.ICRCBad.String())
	require.Equal(t, "exact", wire.ICRCExact.String())
	require.Equal(t, "member", wire.ICRCMember.String())
}
