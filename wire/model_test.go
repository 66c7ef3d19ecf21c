package wire_test

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// slowCRC32 is the CRC-32 of Ethernet, bit by bit.
func slowCRC32(p []byte) uint32 {
	reg := ^uint32(0)
	for _, v := range p {
		for i := range 8 {
			in := uint32(v) >> i & 1
			out := reg & 1
			reg >>= 1
			if in != out {
				reg ^= 0xEDB88320
			}
		}
	}
	return ^reg
}

// slowICRC returns the ICRC of a datagram from IP header (RoCE v1: GRH) to ICRC, computed over a
// masked copy.
func slowICRC(datagram []byte) uint32 {
	b := slices.Clone(datagram[:len(datagram)-wire.ICRCLen])
	bth := 0
	if b[0]>>4 == 4 {
		b[1], b[8], b[10], b[11] = 0xFF, 0xFF, 0xFF, 0xFF // TOS, TTL, checksum
		b[26], b[27] = 0xFF, 0xFF                         // UDP checksum
		bth = 28
	} else {
		b[0] |= 0x0F // traffic class and flow label
		b[1], b[2], b[3], b[7] = 0xFF, 0xFF, 0xFF, 0xFF
		bth = 40
		if b[6] == 17 {
			b[46], b[47] = 0xFF, 0xFF
			bth = 48
		}
	}
	b[bth+4] = 0xFF
	return slowCRC32(append(slices.Repeat([]byte{0xFF}, 8), b...))
}

// datagram prepends IP and UDP headers to a packet, BTH to ICRC.
func datagram(src, dst netip.AddrPort, id uint16, pkt []byte) []byte {
	udpLen := 8 + len(pkt)
	var b []byte
	if src.Addr().Is4() {
		b = append(b, 0x45, 0x02)
		b = binary.BigEndian.AppendUint16(b, uint16(20+udpLen))
		b = binary.BigEndian.AppendUint16(b, id)
		b = append(b, 0x40, 0, 63, 17, 0xAB, 0xCD)
	} else {
		b = append(b, 0x60, 0x21, 0x23, 0x45)
		b = binary.BigEndian.AppendUint16(b, uint16(udpLen))
		b = append(b, 17, 63)
	}
	b = append(b, src.Addr().AsSlice()...)
	b = append(b, dst.Addr().AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(udpLen))
	b = append(b, 0, 0)
	return append(b, pkt...)
}

// opened is a datagram in parts.
type opened struct {
	src, dst netip.AddrPort
	id       uint16
	ip       []byte // the IP header
	pkt      []byte // BTH to ICRC
}

// open divides a datagram into its parts, IP header first.
func open(t testing.TB, b []byte) opened {
	t.Helper()
	var d opened
	var src, dst netip.Addr
	switch b[0] >> 4 {
	case 4:
		require.EqualValues(t, 0x45, b[0], "IPv4 header with options")
		require.EqualValues(t, 17, b[9], "not UDP")
		d.id = binary.BigEndian.Uint16(b[4:])
		src, dst = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
		d.ip = b[:20]
	case 6:
		require.EqualValues(t, 17, b[6], "not UDP")
		src, dst = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
		d.ip = b[:40]
	default:
		t.Fatalf("not IP: % x", b[:1])
	}
	udp := b[len(d.ip):]
	d.src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(udp[0:]))
	d.dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(udp[2:]))
	d.pkt = udp[8:binary.BigEndian.Uint16(udp[4:])]
	return d
}

// encode encodes p header by header, without the ICRC.
func encode(p *wire.Packet) []byte {
	b := make([]byte, wire.BTHLen)
	p.BTH.Put(b)
	put := func(size int, header interface{ Put([]byte) }) {
		b = append(b, make([]byte, size)...)
		header.Put(b[len(b)-size:])
	}
	i := p.Info
	if i.Operation == wire.OpCNP {
		cnp := make([]byte, wire.CNPLen)
		wire.PutCNP(cnp, p.BTH.DestQPN)
		return cnp[:wire.CNPLen-wire.ICRCLen]
	}
	if i.DETH {
		put(wire.DETHLen, p.DETH())
	}
	if i.FETH {
		put(wire.FETHLen, p.FETH())
	}
	if i.RETH {
		put(wire.RETHLen, p.RETH())
	}
	if i.AtomicETH {
		put(wire.AtomicETHLen, p.AtomicETH())
	}
	if i.AETH {
		put(wire.AETHLen, p.AETH())
	}
	if i.AtomicAckETH {
		put(wire.AtomicAckETHLen, p.AtomicAckETH())
	}
	if i.SackETH {
		put(wire.SackETHLen, p.SackETH())
	}
	if i.Imm {
		b = binary.BigEndian.AppendUint32(b, p.Imm())
	}
	if i.IETH {
		put(wire.IETHLen, p.IETH())
	}
	return append(append(b, p.Payload...), make([]byte, p.BTH.Pad)...)
}

// goldenDir has packets made by other implementations.
const goldenDir = "../testdata/packets"

// golden returns the bytes of a .hex file.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(goldenDir, name+".hex"))
	require.NoError(t, err)
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			digits.WriteString(strings.TrimSpace(line))
		}
	}
	b, err := hex.DecodeString(digits.String())
	require.NoError(t, err, name)
	return b
}
