package wire_test

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// goldenSelectiveAck is a selective acknowledgement from 192.0.2.1 to 192.0.2.2 for QP 0xABCD,
// BTH to ICRC: all packets up to PSN 0x100 have arrived, and ahead of 0x101 the PSNs 0x102, 0x103
// and 0x141. Three packets had arrived before.
const goldenSelectiveAck = "f100ffff0000abcd00000100" + "1f000007" + "00020003" +
	"00000101" + "0000000000000006" + "00000141" + "0000000000000001" + "faa10bdc"

func TestGoldenSelectiveAck(t *testing.T) {
	want, err := hex.DecodeString(goldenSelectiveAck)
	require.NoError(t, err)
	var p wire.Packet
	require.Equal(t, wire.DropNone, p.Parse(want))
	require.Equal(t, wire.BTH{Opcode: wire.RCSelectiveAck, PKey: 0xFFFF, DestQPN: 0xABCD, PSN: 0x100}, p.BTH)
	require.Equal(t, wire.AETH{Syndrome: 0x1F, MSN: 7}, p.AETH())
	var s wire.SelectiveAck
	require.True(t, s.Parse(p.Payload))
	require.Equal(t, wire.SelectiveAck{Duplicates: 3, Blocks: []wire.SackBlock{{PSN: 0x101, Arrived: 6}, {PSN: 0x141, Arrived: 1}}}, s)

	b := make([]byte, p.Info.HeaderLen+s.Len()+wire.ICRCLen)
	p.BTH.Put(b)
	p.AETH().Put(b[wire.BTHLen:])
	s.Put(b[p.Info.HeaderLen:])
	src, dst := netip.MustParseAddrPort("192.0.2.1:49152"), netip.MustParseAddrPort("192.0.2.2:4791")
	icrc := wire.NewICRC(src, dst)
	icrc.Put(b, 0)
	require.Equal(t, slowICRC(datagram(src, dst, 0, b)), icrcOf(b), "the model")
	require.Equal(t, goldenSelectiveAck, hex.EncodeToString(b))
	require.LessOrEqual(t, len(b), wire.MaxSelectiveAckLen)
}

func TestMalformedSelectiveAck(t *testing.T) {
	whole := make([]byte, 64)
	(&wire.SelectiveAck{Blocks: []wire.SackBlock{{PSN: 1, Arrived: 1}}}).Put(whole)
	good := whole[:16]
	for name, change := range map[string]func(b []byte) []byte{
		"empty":           func(b []byte) []byte { return nil },
		"no header":       func(b []byte) []byte { return b[:3] },
		"short":           func(b []byte) []byte { return b[:15] },
		"long":            func(b []byte) []byte { return append(b, 0) },
		"reserved byte":   func(b []byte) []byte { b[0] = 1; return b },
		"fewer blocks":    func(b []byte) []byte { b[1] = 0; return b },
		"more blocks":     func(b []byte) []byte { b[1] = 2; return b },
		"too many blocks": func(b []byte) []byte { b[1] = 17; return append(b, make([]byte, 16*12)...) },
		"long PSN":        func(b []byte) []byte { b[4] = 1; return b },
		"empty block":     func(b []byte) []byte { b[15] = 0; return b },
	} {
		var s wire.SelectiveAck
		require.True(t, s.Parse(good))
		require.False(t, s.Parse(change(slices.Clone(good))), name)
	}
}

// FuzzSelectiveAck checks that Parse accepts exactly what Put writes.
func FuzzSelectiveAck(f *testing.F) {
	whole, err := hex.DecodeString(goldenSelectiveAck)
	require.NoError(f, err)
	f.Add(whole[16 : len(whole)-4])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		var s wire.SelectiveAck
		if !s.Parse(payload) {
			return
		}
		require.LessOrEqual(t, len(s.Blocks), wire.MaxSackBlocks)
		b := make([]byte, s.Len())
		s.Put(b)
		require.Equal(t, payload, b)
	})
}
