package bsdh_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
)

func addSeeds(f *testing.F) {
	for _, b := range layouts(f) {
		f.Add(b)
	}
	f.Add([]byte{})
}

// FuzzParse checks that arbitrary bytes do not panic, and that an accepted message is encoded to
// the same bytes except reserved ones.
func FuzzParse(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for m := range 256 {
			parseExtended(bsdh.MID(m), b)
		}
		h, err := bsdh.ParseHeader(b)
		if err != nil {
			require.ErrorIs(t, err, bsdh.ErrMalformed)
			require.Zero(t, h)
			return
		}
		payload := h.Payload(b)
		require.Equal(t, int(h.Len), bsdh.HeaderBytes+h.MID.Extended()+len(payload))
		require.Equal(t, b[:bsdh.HeaderBytes], h.Append(nil))
		ext, err := parseExtended(h.MID, b[bsdh.HeaderBytes:])
		if err != nil {
			require.Equal(t, bsdh.MIDModeChange, h.MID, "the length was checked")
			return
		}
		if m, ok := ext.(bsdh.ModeChange); ok {
			again, err := bsdh.ParseExtended[bsdh.ModeChange](m.Append(nil))
			require.NoError(t, err)
			require.Equal(t, m, again)
		} else if ext != nil {
			require.Equal(t, b[bsdh.HeaderBytes:bsdh.HeaderBytes+h.MID.Extended()], ext.(extended).Append(nil))
		}
	})
}

// FuzzHello checks that arbitrary private data does not panic, and that an accepted Hello or
// HelloAck survives encoding and decoding.
func FuzzHello(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := bsdh.ParseHello(b); err == nil {
			again, err := bsdh.ParseHello(h.Append(nil))
			require.NoError(t, err)
			require.Equal(t, h, again)
		} else {
			require.ErrorIs(t, err, bsdh.ErrMalformed)
		}
		if h, err := bsdh.ParseHelloAck(b); err == nil {
			again, err := bsdh.ParseHelloAck(h.Append(nil))
			require.NoError(t, err)
			require.Equal(t, h, again)
		} else {
			require.ErrorIs(t, err, bsdh.ErrMalformed)
		}
	})
}
