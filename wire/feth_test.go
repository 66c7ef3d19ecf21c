package wire_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// goldenFlushTexts are FLUSH packets from BTH to ICRC that Linux rdma_rxe 7.2.13 sent. Their ICRC is wrong: it is not
// that of these bytes, and rdma_rxe drops FLUSH with one that is.
var goldenFlushTexts = []string{
	"1c00ffff00123456800003e90000000100007f5379d6200000000516000000406d2e2962",
	"1c00ffff00123456800003ea0000001100007f5379d6200000000516000000408380a1e2",
	"1c00ffff00123456800003eb0000000200007f5379d620000000051600000040d8e6b338",
}

func goldenFlushes(t testing.TB) (packets [][]byte) {
	for _, text := range goldenFlushTexts {
		b, err := hex.DecodeString(text)
		require.NoError(t, err)
		packets = append(packets, b)
	}
	return packets
}

// TestGoldenFlushes compares all but the ICRC with packets of Linux.
func TestGoldenFlushes(t *testing.T) {
	want := []wire.FETH{
		{Selectivity: wire.SelectRange, Placement: wire.PlacementGlobal},
		{Selectivity: wire.SelectRegion, Placement: wire.PlacementGlobal},
		{Selectivity: wire.SelectRange, Placement: wire.PlacementPersistent},
	}
	for i, raw := range goldenFlushes(t) {
		var p wire.Packet
		require.Equal(t, wire.DropNone, p.Parse(raw))
		require.Equal(t, wire.BTH{Opcode: wire.RCFlush, PKey: 0xFFFF, DestQPN: 0x123456, AckReq: true, PSN: wire.PSN(1001 + i)}, p.BTH)
		require.Equal(t, want[i], p.FETH())
		require.Equal(t, wire.RETH{VA: 0x7f5379d62000, RKey: 0x516, Length: 64}, p.RETH())
		require.True(t, p.LengthFits(1024))
		require.Equal(t, raw[:len(raw)-wire.ICRCLen], encode(&p))
	}
}
