package bsdh_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
)

// TestShortHeaderBits compares the bits with the specification.
func TestShortHeaderBits(t *testing.T) {
	b, ok := bsdh.MakeShortHeader(bsdh.Header{MID: bsdh.MIDData, Flags: bsdh.OOBPending, Bufs: 3, Ack: 0x5678_1234})
	require.True(t, ok)
	require.EqualValues(t, 0x1234_000E, b)
	b, ok = bsdh.MakeShortHeader(bsdh.Header{MID: bsdh.MIDData, Flags: bsdh.OOBPresent, Bufs: 16383})
	require.True(t, ok)
	require.EqualValues(t, 0x0000_FFFD, b)
}

// TestShortHeaderRoundTrip checks that a short header is expanded to the original one if it acknowledges
// one of the last 65536 messages, also after a wrap of the numbers.
func TestShortHeaderRoundTrip(t *testing.T) {
	for _, sent := range []uint32{0, 1, 65535, 65536, 1 << 31, 1<<32 - 1} {
		for _, behind := range []uint32{0, 1, 2, 255, 65534, 65535} {
			h := bsdh.Header{MID: bsdh.MIDData, Flags: bsdh.OOBPresent, Bufs: 77, Len: 16 + 4096, Seq: 9, Ack: sent - behind}
			b, ok := bsdh.MakeShortHeader(h)
			require.True(t, ok)
			require.Equal(t, h, b.Header(9, sent, 4096))
		}
	}
}

func TestNoShortHeader(t *testing.T) {
	for _, h := range []bsdh.Header{
		{MID: bsdh.MIDSrcAvail},
		{MID: bsdh.MIDData, Flags: bsdh.RequestPipe},
		{MID: bsdh.MIDData, Flags: 8},
		{MID: bsdh.MIDData, Bufs: 16384},
	} {
		_, ok := bsdh.MakeShortHeader(h)
		require.False(t, ok, "%+v", h)
	}
}
