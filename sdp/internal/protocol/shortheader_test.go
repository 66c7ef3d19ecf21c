package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// TestShortHeader checks that between two capable ends the header of data is immediate data, and that a
// standard peer gets the standard's.
func TestShortHeader(t *testing.T) {
	for _, plain := range []bool{false, true} {
		w := newWorld(t, 1)
		cfg := Config{FlowControl: flow.Credit, Buffers: 4, BufferBytes: 100, Queue: 16, Receives: 16, MaxAdverts: 1}
		w.connect(cfg, cfg, plain)
		w.runUntilIdle()
		for i, from := range w.ends {
			require.Equal(t, 10, from.core.Write(make([]byte, 10)))
			sends := from.core.Sends()
			require.Len(t, sends, 1)
			opcode, length := verbs.WRSendWithImm, 10
			if plain {
				opcode, length = verbs.WRSend, bsdh.HeaderBytes+10
			}
			require.Equal(t, opcode, sends[0].Opcode)
			require.EqualValues(t, length, sends[0].SGList[0].Length)
			from.post()
			w.runUntilIdle()
			require.Equal(t, 10, w.ends[1-i].core.Buffered())
		}
	}
}

// TestShortHeaderOverflow checks that a number of receives that exceeds a short header is sent in a full
// one.
func TestShortHeaderOverflow(t *testing.T) {
	w := newWorld(t, 1)
	cfg := Config{FlowControl: flow.Credit, Buffers: 1 << 14, BufferBytes: 64, Queue: 16, Receives: 16, MaxAdverts: 1}
	w.connect(cfg, cfg, false)
	w.runUntilIdle()
	require.Equal(t, 10, w.ends[0].core.Write(make([]byte, 10)))
	require.Equal(t, verbs.WRSend, w.ends[0].core.Sends()[0].Opcode)
	w.ends[0].post()
	w.runUntilIdle()
	require.Equal(t, 10, w.ends[1].core.Buffered())
}

// TestInvalidShortHeader checks that immediate data that was not negotiated, or of a message that was not
// sent, is a violation.
func TestInvalidShortHeader(t *testing.T) {
	header := func(ack uint32) uint32 {
		b, ok := bsdh.MakeShortHeader(bsdh.Header{MID: bsdh.MIDData, Bufs: 20, Ack: ack})
		require.True(t, ok)
		return uint32(b)
	}
	e := newEvil(t, flow.Credit).start()
	e.deliverImm(header(e.lastNumber()), []byte("data"))
	require.NoError(t, e.core.Err())
	require.Equal(t, 4, e.core.Buffered())
	left := e.core.credits.Available()
	e.deliverImm(header(e.lastNumber()+1), []byte("more")) // that is 65535 messages earlier
	require.NoError(t, e.core.Err())
	require.Equal(t, left, e.core.credits.Available(), "an old word")
	e.deliverImm(header(e.lastNumber()), make([]byte, e.cfg.BufferBytes))
	require.NoError(t, e.core.Err())
	e.deliverImm(header(e.lastNumber()), make([]byte, e.cfg.BufferBytes+1))
	require.ErrorIs(t, e.core.Err(), ErrProtocol)
	require.ErrorContains(t, e.core.Err(), "Data message with a short header of 101 bytes exceeds the receive of 100")

	e = newEvil(t, flow.NIC).start()
	e.deliverImm(header(e.lastNumber()), []byte("data"))
	require.ErrorIs(t, e.core.Err(), ErrProtocol)
	require.ErrorContains(t, e.core.Err(), "not negotiated")
}
