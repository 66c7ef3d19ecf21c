package wire_test

import (
	"fmt"
	"hash/crc32"
	"net/netip"
	"testing"

	"github.com/softrnic/softrnic/wire"
)

// families are the two ends of the benchmarks, by address family.
var families = []struct {
	name     string
	src, dst netip.AddrPort
}{
	{"ipv4", netip.MustParseAddrPort("192.0.2.1:4791"), netip.MustParseAddrPort("192.0.2.2:4791")},
	{"ipv6", netip.MustParseAddrPort("[2001:db8::1]:4791"), netip.MustParseAddrPort("[2001:db8::2]:4791")},
}

// packetOfSize returns a packet of n bytes that Parse accepts.
func packetOfSize(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	h := wire.BTH{Opcode: wire.RCSendOnly, PKey: wire.DefaultPKey, DestQPN: 17, AckReq: true, PSN: 0xABCDEF}
	h.Put(b)
	return b
}

func BenchmarkParse(b *testing.B) {
	raw := packetOfSize(4112)
	var p wire.Packet
	b.ReportAllocs()
	for b.Loop() {
		if p.Parse(raw) != wire.DropNone {
			b.Fatal("dropped")
		}
	}
}

func BenchmarkParseWriteOnly(b *testing.B) {
	raw := packetOfSize(wire.BTHLen + wire.RETHLen + 8 + wire.ICRCLen)
	raw[0] = byte(wire.RCWriteOnly)
	var p wire.Packet
	var sum uint64
	b.ReportAllocs()
	for b.Loop() {
		if p.Parse(raw) != wire.DropNone {
			b.Fatal("dropped")
		}
		sum += p.RETH().VA
	}
	_ = sum
}

func BenchmarkPutBTH(b *testing.B) {
	raw := make([]byte, wire.BTHLen)
	h := wire.BTH{Opcode: wire.RCSendOnly, PKey: wire.DefaultPKey, DestQPN: 17, AckReq: true}
	for b.Loop() {
		h.PSN = h.PSN.Add(1)
		h.Put(raw)
	}
}

func BenchmarkICRCPut(b *testing.B) {
	for _, f := range families {
		for _, n := range []int{24, 4112} {
			b.Run(fmt.Sprintf("%s/%d", f.name, n), func(b *testing.B) {
				s, pkt := wire.NewICRC(f.src, f.dst), packetOfSize(n)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					s.Put(pkt, 1)
				}
			})
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct {
		name string
		id   uint16
		want wire.ICRCResult
	}{{"exact", 1, wire.ICRCExact}, {"member", 0, wire.ICRCMember}} {
		for _, n := range []int{24, 4112} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				s, pkt := wire.NewICRC(families[0].src, families[0].dst), packetOfSize(n)
				s.Put(pkt, 1)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					if r, _ := s.Check(pkt, c.id); r != c.want {
						b.Fatal(r)
					}
				}
			})
		}
	}
}

// BenchmarkCRC32 is the ceiling for Put and Check.
func BenchmarkCRC32(b *testing.B) {
	for _, n := range []int{24, 4112} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			pkt := packetOfSize(n)
			b.SetBytes(int64(n))
			for b.Loop() {
				crc32.ChecksumIEEE(pkt)
			}
		})
	}
}

func BenchmarkNewICRC(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		wire.NewICRC(families[0].src, families[0].dst)
	}
}
