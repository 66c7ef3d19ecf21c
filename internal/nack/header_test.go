package nack

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestHeaderBytes compares encoded headers with bytes written by hand.
func TestHeaderBytes(t *testing.T) {
	for want, h := range map[string]Header{
		"4e010700" + "00000003" + "0a0b0c0d" + "01020304" + "00000011" + "00000022" + "00000033" + "00000044" + "00000000": {Kind: Data, Flags: First | Last | AckRequested, From: 3,
			Epoch: 0x0a0b0c0d, To: 0x01020304, Seq: 0x11, Ack: 0x22, TxNum: 0x33, TxEcho: 0x44},
		"4e030000" + "00000003" + "00000001" + "00000002" + "00000000" + "fffffffe" + "00000000" + "00000044" + "8000000000000001": {Kind: Nack, From: 3, Epoch: 1, To: 2,
			Ack: 0xfffffffe, TxEcho: 0x44, Sack: 1<<63 | 1},
		"4e040000" + "00000003" + "00000001" + "00000002" + "00000005" + "00000006" + "00000007" + "00000008": {Kind: Probe, From: 3, Epoch: 1, To: 2, Seq: 5, Ack: 6, TxNum: 7, TxEcho: 8},
		"4e050000" + "00000003" + "00000001" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000": {Kind: Hello, From: 3, Epoch: 1},
	} {
		b := make([]byte, FeedbackSize)
		b = b[:h.Put(b)]
		require.Equal(t, want, hex.EncodeToString(b))
		var back Header
		require.True(t, back.Parse(b))
		require.Equal(t, h, back)
		for n := range b {
			require.False(t, back.Parse(b[:n]), "%v cut off at %d", h.Kind, n)
		}
		for i, change := range map[int]byte{0: 1, 1: 0x20, 2: 0x10, 3: 1} {
			b[i] ^= change
			require.False(t, back.Parse(b), "byte %d", i)
			b[i] ^= change
		}
	}
	require.Equal(t, "NACK", Nack.String())
	require.Equal(t, "kind 9", Kind(9).String())
}

// TestHeaderRoundTrip checks that encoded headers are decoded to the same values.
func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Uint32()
		h := Header{Kind: rapid.SampledFrom([]Kind{Data, Ack, Nack, Probe, Hello}).Draw(t, "kind"), From: number.Draw(t, "from"),
			Epoch: 1 + number.Draw(t, "epoch")%1000, Seq: number.Draw(t, "seq"), Ack: number.Draw(t, "ack"), TxNum: number.Draw(t, "order"), TxEcho: number.Draw(t, "echo")}
		payload := 0
		switch h.Kind {
		case Data:
			h.Flags = Flags(rapid.IntRange(0, 7).Draw(t, "flags"))
			payload = rapid.IntRange(1, 100).Draw(t, "payload")
			h.Length = uint32(payload)
			if h.Flags&(First|Last) != First|Last {
				h.Length++
			}
		case Ack, Nack:
			h.Sack = rapid.Uint64().Draw(t, "have")
		}
		if h.Kind != Hello {
			h.To = 1 + number.Draw(t, "to")%1000
		}
		b := make([]byte, FeedbackSize+payload)
		b = b[:h.Put(b)+payload]
		var back Header
		require.True(t, back.Parse(b))
		require.Equal(t, h, back)
	})
}
