package wire_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire"
)

// packet encodes a packet of the given opcode whose extended headers, payload and padding are n
// bytes in total.
func packet(h wire.BTH, n int) []byte {
	b := make([]byte, wire.BTHLen+n+wire.ICRCLen)
	h.Put(b)
	return b
}

func TestParseDrops(t *testing.T) {
	good := wire.BTH{Opcode: wire.RCSendOnly, PKey: wire.DefaultPKey, DestQPN: 17}
	with := func(change func(*wire.BTH)) wire.BTH {
		h := good
		change(&h)
		return h
	}
	opcode := func(o wire.Opcode) wire.BTH { return with(func(h *wire.BTH) { h.Opcode = o }) }
	pad := func(n uint8) wire.BTH { return with(func(h *wire.BTH) { h.Pad = n }) }

	for _, c := range []struct {
		name string
		raw  []byte
		want wire.Drop
	}{
		{"good", packet(good, 8), wire.DropNone},
		{"without payload", packet(good, 0), wire.DropNone},
		{"empty", nil, wire.DropTruncated},
		{"BTH without ICRC", packet(good, 0)[:wire.MinPacketLen-1], wire.DropTruncated},
		{"reserved opcode", packet(opcode(0x15), 8), wire.DropBadOpcode},
		{"reliable datagram", packet(opcode(0x44), 8), wire.DropBadOpcode},
		{"XRC", packet(opcode(0xA4), 8), wire.DropBadOpcode},
		{"version 1", packet(with(func(h *wire.BTH) { h.TVer = 1 }), 8), wire.DropBadVersion},
		{"QPN 0", packet(with(func(h *wire.BTH) { h.DestQPN = 0 }), 8), wire.DropUnknownQPN},
		{"RETH cut off", packet(opcode(wire.RCWriteOnly), 15), wire.DropTruncated},
		{"RETH only", packet(opcode(wire.RCWriteOnly), 16), wire.DropNone},
		{"all pad", packet(pad(3), 3), wire.DropNone},
		{"more pad than bytes", packet(pad(3), 2), wire.DropBadPad},
		{"pad of an ACK", packet(with(func(h *wire.BTH) { h.Opcode, h.Pad = wire.RCAck, 1 }), 4), wire.DropBadPad},
		{"ACK", packet(opcode(wire.RCAck), 4), wire.DropNone},
		{"ACK with payload", packet(opcode(wire.RCAck), 8), wire.DropBadLength},
		{"READ request with payload", packet(opcode(wire.RCReadRequest), 20), wire.DropBadLength},
		{"atomic with payload", packet(opcode(wire.RCFetchAdd), 32), wire.DropBadLength},
		{"FLUSH with payload", packet(opcode(wire.RCFlush), 24), wire.DropBadLength},
		{"FLUSH cut off", packet(opcode(wire.RCFlush), 16), wire.DropTruncated},
		{"CNP", packet(opcode(wire.CNP), 16), wire.DropNone},
		{"CNP cut off", packet(opcode(wire.CNP), 12), wire.DropTruncated},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := netip.MustParseAddrPort("192.0.2.1:4791")
			p := wire.Packet{Src: src, TOS: 2, Payload: []byte("of the packet before")}
			require.Equal(t, c.want, p.Parse(c.raw), "%v", p.Parse(c.raw))
			require.Equal(t, src, p.Src)
			require.EqualValues(t, 2, p.TOS)
			require.NotNil(t, p.Info)
			require.Equal(t, c.raw, p.Raw)
			if c.want != wire.DropNone {
				require.Nil(t, p.Payload)
			}
			if len(c.raw) >= wire.MinPacketLen {
				require.Equal(t, wire.ParseBTH(c.raw), p.BTH)
			} else {
				require.Equal(t, wire.BTH{Opcode: wire.NoOpcode}, p.BTH)
			}
		})
	}
}

func TestLengthFits(t *testing.T) {
	const mtu = 256
	for _, c := range []struct {
		name    string
		opcode  wire.Opcode
		payload int
		pad     uint8
		want    bool
	}{
		{"FIRST of MTU", wire.RCSendFirst, mtu, 0, true},
		{"FIRST short", wire.RCSendFirst, mtu - 4, 0, false},
		{"FIRST short, padded to MTU", wire.RCSendFirst, mtu - 1, 1, false},
		{"FIRST of nothing", wire.RCSendFirst, 0, 0, false},
		{"MIDDLE long", wire.UCWriteMiddle, mtu + 4, 0, false},
		{"LAST of 1", wire.RCSendLast, 1, 3, true},
		{"LAST of 1, pad forgotten", wire.RCSendLast, 1, 0, false},
		{"LAST of 4, one pad too many", wire.RCSendLast, 4, 1, false},
		{"LAST of nothing", wire.RCSendLast, 0, 0, false},
		{"LAST of MTU", wire.RCSendLast, mtu, 0, true},
		{"LAST long", wire.RCSendLast, mtu + 4, 0, false},
		{"ONLY of nothing", wire.RCSendOnly, 0, 0, true},
		{"ONLY of MTU", wire.UDSendOnly, mtu, 0, true},
		{"ONLY long", wire.UDSendOnly, mtu + 1, 3, false},
		{"ATOMIC WRITE of 8", wire.RCAtomicWrite, 8, 0, true},
		{"ATOMIC WRITE of 4", wire.RCAtomicWrite, 4, 0, false},
		{"ATOMIC WRITE of 16", wire.RCAtomicWrite, 16, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := wire.BTH{Opcode: c.opcode, Pad: c.pad, DestQPN: 17}
			extra := c.opcode.Info().HeaderLen - wire.BTHLen
			var p wire.Packet
			require.Equal(t, wire.DropNone, p.Parse(packet(h, extra+c.payload+int(c.pad))))
			require.Len(t, p.Payload, c.payload)
			require.Equal(t, c.want, p.LengthFits(mtu))
		})
	}
}

// anyPacket draws a packet that Parse accepts, reserved bits and pad zero.
func anyPacket(t *rapid.T) []byte {
	var valid []wire.Opcode
	for code := range 256 {
		if o := wire.Opcode(code); o.Info().Valid {
			valid = append(valid, o)
		}
	}
	h := wire.BTH{
		Opcode:  rapid.SampledFrom(valid).Draw(t, "opcode"),
		SE:      rapid.Bool().Draw(t, "SE"),
		MigReq:  rapid.Bool().Draw(t, "MigReq"),
		PKey:    rapid.Uint16().Draw(t, "PKey"),
		FECN:    rapid.Bool().Draw(t, "FECN"),
		BECN:    rapid.Bool().Draw(t, "BECN"),
		DestQPN: rapid.Uint32Range(1, wire.QPNMask).Draw(t, "DestQPN"),
		AckReq:  rapid.Bool().Draw(t, "AckReq"),
		PSN:     anyPSN().Draw(t, "PSN"),
	}
	i := h.Opcode.Info()
	if i.Operation == wire.OpCNP {
		b := make([]byte, wire.CNPLen)
		wire.PutCNP(b, h.DestQPN)
		return b
	}
	extra := i.HeaderLen - wire.BTHLen
	ext := rapid.SliceOfN(rapid.Byte(), extra, extra).Draw(t, "headers")
	if i.DETH {
		ext[4] = 0 // reserved
	}
	if i.FETH {
		copy(ext, []byte{0, 0, 0, ext[3] & 0x3F}) // reserved
	}
	var payload []byte
	if _, most := i.PayloadRange(wire.MaxMTU); most > 0 {
		payload = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload")
	}
	h.Pad = uint8(wire.PadFor(len(payload)))
	b := make([]byte, wire.BTHLen)
	h.Put(b)
	return slices.Concat(b, ext, payload, make([]byte, h.Pad), make([]byte, wire.ICRCLen))
}

// TestParseThenEncode checks that parsing and encoding gives the same bytes.
func TestParseThenEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := anyPacket(t)
		before := slices.Clone(raw)
		var p wire.Packet
		require.Equal(t, wire.DropNone, p.Parse(raw))
		require.Equal(t, raw[:len(raw)-wire.ICRCLen], encode(&p))
		require.Equal(t, before, raw, "Parse wrote to the packet")
	})
}

func TestNoAllocations(t *testing.T) {
	src, dst := families[0].src, families[0].dst
	s := wire.NewICRC(src, dst)
	var p wire.Packet
	var sink uint64
	grh := make([]byte, wire.GRHLen)
	ack, data := packetOfSize(24), packetOfSize(4112)
	atomic := packet(wire.BTH{Opcode: wire.RCCmpSwap, DestQPN: 1}, wire.AtomicETHLen)
	ud := packet(wire.BTH{Opcode: wire.UDSendOnlyImm, DestQPN: 1}, wire.DETHLen+wire.ImmLen)
	for name, f := range map[string]func(){
		"Parse":   func() { p.Parse(data) },
		"drop":    func() { p.Parse(data[:7]) },
		"atomic":  func() { p.Parse(atomic); sink += p.AtomicETH().Compare },
		"UD":      func() { p.Parse(ud); sink += uint64(p.DETH().QKey) + uint64(p.Imm()) },
		"Put":     func() { p.BTH.Put(data); wire.RETH{VA: sink}.Put(data[12:]) },
		"CNP":     func() { wire.PutCNP(data, 17) },
		"PutICRC": func() { s.Put(ack, 0); s.Put(data, 0) },
		"Check":   func() { s.Check(ack, 0); s.Check(data, 1) },
		"flow":    func() { n := wire.NewICRC(src, dst); n.Put(ack, 0) },
		"GRH":     func() { wire.PutGRH(grh, src.Addr(), dst.Addr(), 0, 100) },
		"GRH in":  func() { wire.ParseGRH(grh) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, f), name)
	}
}

// TestParseUnstable parses a packet whose bytes another process changes afterwards: only the payload
// changes. No opcode has more headers than are copied.
func TestParseUnstable(t *testing.T) {
	for op := range 256 {
		require.LessOrEqual(t, wire.Opcode(op).Info().HeaderLen, wire.MaxHeaderLen)
	}
	raw := make([]byte, wire.BTHLen+wire.RETHLen+8+wire.ICRCLen)
	h := wire.BTH{Opcode: wire.RCWriteOnly, DestQPN: 7, PSN: 9}
	h.Put(raw)
	reth := wire.RETH{VA: 1, RKey: 2, Length: 8}
	reth.Put(raw[wire.BTHLen:])
	var p wire.Packet
	var own [wire.MaxHeaderLen]byte
	require.Equal(t, wire.DropNone, p.ParseUnstable(raw, &own))
	for i := range raw {
		raw[i] = 0xff
	}
	require.Equal(t, reth, p.RETH())
	require.EqualValues(t, 7, p.BTH.DestQPN)
	require.Equal(t, []byte{255, 255, 255, 255, 255, 255, 255, 255}, p.Payload)
	require.Equal(t, wire.DropTruncated, p.ParseUnstable(raw[:10], &own))
}
