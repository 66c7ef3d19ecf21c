package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire"
)

// TestHeadersRoundTrip checks that every header survives encoding and decoding and writes no byte
// beyond its length, and that any bytes survive decoding and encoding.
func TestHeadersRoundTrip(t *testing.T) {
	checkHeader(t, "RETH", wire.RETHLen, wire.ParseRETH, nil)
	checkHeader(t, "FETH", wire.FETHLen, wire.ParseFETH, func(b []byte) { copy(b, []byte{0, 0, 0, b[3] & 0x3F}) })
	checkHeader(t, "AETH", wire.AETHLen, wire.ParseAETH, nil)
	checkHeader(t, "AtomicETH", wire.AtomicETHLen, wire.ParseAtomicETH, nil)
	checkHeader(t, "AtomicAckETH", wire.AtomicAckETHLen, wire.ParseAtomicAckETH, nil)
	checkHeader(t, "SackETH", wire.SackETHLen, wire.ParseSackETH, nil)
	checkHeader(t, "IETH", wire.IETHLen, wire.ParseIETH, nil)
	checkHeader(t, "DETH", wire.DETHLen, wire.ParseDETH, func(b []byte) { b[4] = 0 })
	checkHeader(t, "BTH", wire.BTHLen, parseBTH, clearReserved)
}

func parseBTH(b []byte) *wire.BTH {
	h := wire.ParseBTH(b)
	return &h
}

// clearReserved clears the reserved bits of a BTH.
func clearReserved(b []byte) {
	b[4] &= 0xC0
	b[8] &= 0xc0
}

// checkHeader checks that any size bytes survive decoding and encoding, with reserved bits cleared.
func checkHeader[H interface{ Put([]byte) }](t *testing.T, name string, size int, parse func([]byte) H, clean func([]byte)) {
	t.Run(name, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			in := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "bytes")
			out := rapid.SliceOfN(rapid.Byte(), size+4, size+4).Draw(t, "slot")
			after := string(out[size:])
			h := parse(in)
			h.Put(out)
			require.Equal(t, h, parse(out))
			if clean != nil {
				clean(in)
			}
			require.Equal(t, in, out[:size])
			require.Equal(t, after, string(out[size:]), "wrote beyond its length")
		})
	})
}

// TestPutCutsWideFields checks that too wide a field loses its upper bits and leaves its neighbours
// unchanged.
func TestPutCutsWideFields(t *testing.T) {
	b := make([]byte, wire.BTHLen)
	h := wire.BTH{Pad: 0xFF, TVer: 0xF0, DestQPN: 0xFF000001, PSN: 0xFF000002}
	h.Put(b)
	require.Equal(t, wire.BTH{Pad: 3, DestQPN: 1, PSN: 2}, wire.ParseBTH(b))

	wire.AETH{Syndrome: 0x1F, MSN: 0xFF000003}.Put(b)
	require.Equal(t, wire.AETH{Syndrome: 0x1F, MSN: 3}, wire.ParseAETH(b))

	wire.FETH{Selectivity: 0xFD, Placement: 0xF2}.Put(b)
	require.Equal(t, wire.FETH{Selectivity: 1, Placement: 2}, wire.ParseFETH(b))

	wire.DETH{QKey: 5, SrcQPN: 0xFF000004}.Put(b)
	require.Equal(t, wire.DETH{QKey: 5, SrcQPN: 4}, wire.ParseDETH(b))
	require.Zero(t, b[4], "reserved")
}

func TestPutCNP(t *testing.T) {
	b := []byte("an old packet was in this slot, and something after it")
	after := string(b[wire.CNPLen-wire.ICRCLen:])
	wire.PutCNP(b, 0x118)
	d := open(t, golden(t, "cnp"))
	require.Equal(t, d.pkt[:wire.CNPLen-wire.ICRCLen], b[:wire.CNPLen-wire.ICRCLen])
	require.Equal(t, after, string(b[wire.CNPLen-wire.ICRCLen:]))
}

func TestPadFor(t *testing.T) {
	for n, pad := range map[int]int{0: 0, 1: 3, 2: 2, 3: 1, 4: 0, 5: 3, 4095: 1, 4096: 0} {
		require.Equal(t, pad, wire.PadFor(n), n)
	}
}
