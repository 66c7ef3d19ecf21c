package wire_test

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// goldenPackets has the content of each golden packet, decoded by hand or by the program that made
// it.
var goldenPackets = []struct {
	name    string
	bth     wire.BTH
	header  any // the extended headers
	payload []byte
}{
	{
		name:    "uc-send-only-ipv4",
		bth:     wire.BTH{Opcode: 0x24, MigReq: true, Pad: 2, PKey: 0xFFFF, DestQPN: 0xD3, PSN: 0xCF1710},
		payload: []byte("\x46\x30\x81\x8b\xe2\x89\x35\xd9\x0e\x9a\x95\x50\x54\x01\xbe\x88\x5e\x50"),
	},
	{
		name:    "uc-send-only-ipv6",
		bth:     wire.BTH{Opcode: 0x24, MigReq: true, Pad: 2, PKey: 0xFFFF, DestQPN: 0xD3, PSN: 0xCF1710},
		payload: []byte("\x46\x30\x81\x8b\xe2\x89\x35\xd9\x0e\x9a\x95\x50\x54\x01\xbe\x88\x5e\x50"),
	},
	{
		name: "cnp",
		bth:  wire.BTH{Opcode: 0x81, PKey: 0xFFFF, BECN: true, DestQPN: 0x118},
	},
	{
		name:   "rc-ack",
		bth:    wire.BTH{Opcode: 0x11, PKey: 0xFFFF, DestQPN: 0xABCD, PSN: 0x100},
		header: wire.AETH{Syndrome: 0x1F, MSN: 1},
	},
	{
		name:   "rc-nak-rnr",
		bth:    wire.BTH{Opcode: 0x11, PKey: 0xFFFF, DestQPN: 0xABCD, PSN: 0x101},
		header: wire.AETH{Syndrome: wire.RNRSyndrome(12), MSN: 1},
	},
	{
		name:   "rc-nak-sequence",
		bth:    wire.BTH{Opcode: 0x11, PKey: 0xFFFF, DestQPN: 0xABCD, PSN: 0x101},
		header: wire.AETH{Syndrome: wire.NakPSNSequence, MSN: 1},
	},
	{
		name:    "rc-write-only",
		bth:     wire.BTH{Opcode: 0x0A, Pad: 3, PKey: 0xFFFF, DestQPN: 0xABCD, AckReq: true, PSN: 0xCB564C},
		header:  wire.RETH{VA: 0x7f0000000000, RKey: 0x1234, Length: 5},
		payload: []byte("\x68\xa9\x3d\xb2\x51"),
	},
	{
		name:   "rc-read-request",
		bth:    wire.BTH{Opcode: 0x0C, PKey: 0xFFFF, DestQPN: 0xABCD, AckReq: true, PSN: 0x796158},
		header: wire.RETH{VA: 0x7f0000000000, RKey: 0x1234, Length: 5},
	},
	{
		name:   "rc-compare-swap",
		bth:    wire.BTH{Opcode: 0x13, PKey: 0xFFFF, DestQPN: 0xABCD, AckReq: true, PSN: 0x2BBBF3},
		header: wire.AtomicETH{VA: 0x7f0000000000, RKey: 0x1234},
	},
	{
		name:   "rc-fetch-add",
		bth:    wire.BTH{Opcode: 0x14, PKey: 0xFFFF, DestQPN: 0xABCD, AckReq: true, PSN: 0x2E7DE2},
		header: wire.AtomicETH{VA: 0x7f0000000000, RKey: 0x1234, SwapAdd: 1},
	},
	{
		name:    "uc-send-only-64",
		bth:     wire.BTH{Opcode: 0x24, PKey: 0xFFFF, DestQPN: 0xABCD, PSN: 0x9B5C40},
		payload: bytes.Repeat([]byte{0x7b}, 64),
	},
	{
		name:    "ud-send-only-64",
		bth:     wire.BTH{Opcode: 0x64, PKey: 0xFFFF, DestQPN: 0xABCD, PSN: 0x8FA452},
		header:  wire.DETH{QKey: 0x11111111, SrcQPN: 0x14},
		payload: bytes.Repeat([]byte{0x7b}, 64),
	},
	{
		name:    "rc-send-only-ipv6",
		bth:     wire.BTH{Opcode: 0x04, PKey: 0xFFFF, DestQPN: 0xABCD, AckReq: true, PSN: 0xDF250E},
		payload: bytes.Repeat([]byte{0x7b}, 8),
	},
	{
		name:   "rc-atomic-ack",
		bth:    wire.BTH{Opcode: 0x12, PKey: 0xFFFF, DestQPN: 0xABCD, PSN: 0x101},
		header: []any{wire.AETH{Syndrome: 0x1F, MSN: 2}, wire.AtomicAckETH{Orig: 0x756d58332379c89c}},
	},
	{
		name:   "rc-compare-swap-operands",
		bth:    wire.BTH{Opcode: 0x13, PKey: 0xFFFF, DestQPN: 0x42, AckReq: true, PSN: 0x101},
		header: wire.AtomicETH{VA: 0x56113360a000, RKey: 0x30a6, SwapAdd: 0x1122334455667788, Compare: 0x756d58332379c89c},
	},
	{
		name:    "rc-atomic-write",
		bth:     wire.BTH{Opcode: 0x1D, PKey: 0xFFFF, DestQPN: 0x123456, AckReq: true, PSN: 1000},
		header:  wire.RETH{VA: 0x7f5379d68000, RKey: 0x516, Length: 8},
		payload: []byte("\x88\x77\x66\x55\x44\x33\x22\x11"),
	},
	{
		name:   "rc-read-response-only",
		bth:    wire.BTH{Opcode: 0x10, PKey: 0xFFFF, DestQPN: 0xABCD, PSN: 0x103},
		header: wire.AETH{Syndrome: 0x1F, MSN: 2},
	},
}

// headerOf returns the headers between BTH and payload, in the form of goldenPackets.
func headerOf(p *wire.Packet) any {
	switch i := p.Info; {
	case i.DETH:
		return p.DETH()
	case i.FETH:
		return []any{p.FETH(), p.RETH()}
	case i.RETH:
		return p.RETH()
	case i.AtomicETH:
		return p.AtomicETH()
	case i.AtomicAckETH:
		return []any{p.AETH(), p.AtomicAckETH()}
	case i.AETH:
		return p.AETH()
	}
	return nil
}

func TestGoldenPackets(t *testing.T) {
	for _, g := range goldenPackets {
		t.Run(g.name, func(t *testing.T) {
			whole := golden(t, g.name)
			d := open(t, whole)

			var p wire.Packet
			require.Equal(t, wire.DropNone, p.Parse(d.pkt))
			require.Equal(t, g.bth, p.BTH)
			require.Equal(t, g.header, headerOf(&p))
			require.Equal(t, string(g.payload), string(p.Payload))
			require.True(t, p.LengthFits(1024))

			s := wire.NewICRC(d.src, d.dst)
			require.Equal(t, binary.LittleEndian.Uint32(d.pkt[len(d.pkt)-wire.ICRCLen:]), slowICRC(whole), "the model")
			result, id := s.Check(d.pkt, d.id)
			require.Equal(t, wire.ICRCExact, result)
			require.Equal(t, d.id, id)

			again := append(encode(&p), 0, 0, 0, 0)
			s.Put(again, d.id)
			require.Equal(t, d.pkt, again)
		})
	}
}

func TestGoldenFilesAreAllUsed(t *testing.T) {
	used := map[string]bool{"rocev1-write-only": true, "rocev1-ack": true}
	for _, g := range goldenPackets {
		used[g.name] = true
	}
	files, err := filepath.Glob(filepath.Join(goldenDir, "*.hex"))
	require.NoError(t, err)
	require.Len(t, files, len(used))
	for _, f := range files {
		require.Contains(t, used, strings.TrimSuffix(filepath.Base(f), ".hex"))
	}
}

// TestGoldenRoCEv1 checks that RoCE v1 is the same from the BTH on, and its ICRC except for the
// headers that it covers.
func TestGoldenRoCEv1(t *testing.T) {
	for _, g := range []struct {
		name   string
		bth    wire.BTH
		header any
	}{
		{
			"rocev1-write-only",
			wire.BTH{Opcode: 0x0A, MigReq: true, Pad: 3, PKey: 0xFFFF, DestQPN: 0x10A, AckReq: true, PSN: 0xA788BC},
			wire.RETH{VA: 0x55d4c0726000, RKey: 0x47b3, Length: 5},
		},
		{
			"rocev1-ack",
			wire.BTH{Opcode: 0x11, MigReq: true, PKey: 0xFFFF, DestQPN: 0x109, PSN: 0xA788C0},
			wire.AETH{Syndrome: 0, MSN: 5},
		},
	} {
		t.Run(g.name, func(t *testing.T) {
			whole := golden(t, g.name)
			pkt := whole[wire.GRHLen:]
			require.Equal(t, binary.LittleEndian.Uint32(pkt[len(pkt)-wire.ICRCLen:]), slowICRC(whole))

			var p wire.Packet
			require.Equal(t, wire.DropNone, p.Parse(pkt))
			require.Equal(t, g.bth, p.BTH)
			require.Equal(t, g.header, headerOf(&p))
			require.Equal(t, pkt[:len(pkt)-wire.ICRCLen], encode(&p))
		})
	}
}
