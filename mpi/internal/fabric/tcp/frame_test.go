package tcp

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// TestFrameGolden checks the bytes of a frame, which must not change.
func TestFrameGolden(t *testing.T) {
	h := frame{Kind: swapFrame, Transfer: 0x0102030405060708, Addr: 0x1112131415161718, Offset: 0x2122232425262728,
		New: 0x3132333435363738, Key: 0x41424344, Bytes: 0x515253 & (maxFramePayload - 1)}
	b := make([]byte, envelope.Size)
	h.marshalTo(b)
	require.Equal(t, "0807060504030201"+"1817161514131211"+"2827262524232221"+"3837363534333231"+"44434241"+"53520085", hex.EncodeToString(b))
	require.True(t, isFrame(b))
	var back frame
	require.NoError(t, back.unmarshal(b))
	require.Equal(t, h, back)
	require.Zero(t, back.payloadSize())
	(&envelope.Header{Kind: envelope.Active}).MarshalTo(b)
	require.False(t, isFrame(b))
}

// FuzzFrame checks that any frame is rejected, or has a length that the buffer can hold.
func FuzzFrame(f *testing.F) {
	b := make([]byte, envelope.Size)
	(&frame{Kind: writeLastFrame, Bytes: maxFramePayload}).marshalTo(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < envelope.Size || !isFrame(b) {
			return
		}
		var h frame
		if err := h.unmarshal(b); err != nil {
			require.ErrorIs(t, err, envelope.ErrMalformed)
			return
		}
		require.LessOrEqual(t, h.payloadSize(), maxFramePayload)
		again := make([]byte, envelope.Size)
		h.marshalTo(again)
		require.Equal(t, b[:envelope.Size], again)
	})
}
