package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

var allFlowControls = []flow.Control{flow.NIC, flow.RDMA, flow.Credit}

// TestUrgent checks that the urgent byte ends a message, and that the reader has its position.
func TestUrgent(t *testing.T) {
	for _, d := range allFlowControls {
		w, a, b := pair(t, d)
		a.core.HoldData(true) // all data is there before any may be sent
		require.Equal(t, 10, a.core.Write(make([]byte, 10)))
		require.Equal(t, 5, a.core.SendUrgent(make([]byte, 5)))
		require.Equal(t, 7, a.core.Write(make([]byte, 7)))
		a.core.HoldData(false)
		a.core.Flush() // the urgent byte stays in place
		solicited := 0
		for _, wr := range a.core.Sends() {
			if wr.Flags&verbs.SendSolicited != 0 {
				solicited++
			}
		}
		require.Equal(t, 1, solicited, "the message with the urgent byte")
		a.post()
		w.runUntilIdle()
		require.Equal(t, 22, b.core.Buffered())
		ahead, announced := b.core.Urgent()
		require.Equal(t, 15, ahead, "%v", d)
		require.False(t, announced)
		require.Equal(t, 14, b.core.Read(make([]byte, 14)))
		ahead, _ = b.core.Urgent()
		require.Equal(t, 1, ahead, "the next byte")
		require.Equal(t, 2, b.core.Read(make([]byte, 2)))
		ahead, _ = b.core.Urgent()
		require.Zero(t, ahead)
	}
}

// TestUrgentTwice checks that the last urgent byte counts.
func TestUrgentTwice(t *testing.T) {
	for _, d := range allFlowControls {
		w, a, b := pair(t, d)
		for _, n := range []int{3, 4, 5} {
			require.Equal(t, n, a.core.SendUrgent(make([]byte, n)))
			a.post()
		}
		w.runUntilIdle()
		ahead, _ := b.core.Urgent()
		require.Equal(t, 12, ahead)
	}
}

// TestUrgentAnnounced checks that an urgent byte is announced while it cannot be sent; with NIC
// flow control nothing overtakes the data in the adapter.
func TestUrgentAnnounced(t *testing.T) {
	for _, d := range allFlowControls {
		w, a, b := pair(t, d)
		for a.core.Write(make([]byte, 100)) > 0 {
			a.post()
			w.runUntilIdle()
		}
		require.Zero(t, a.core.SendUrgent([]byte("!")))
		a.post()
		w.runUntilIdle()
		_, announced := b.core.Urgent()
		require.Equal(t, d != flow.NIC, announced, "%v", d)
		before := a.core.Stats().Controls
		require.Zero(t, a.core.SendUrgent([]byte("!")))
		require.Equal(t, before, a.core.Stats().Controls, "once is enough")

		read := 0
		for sent := false; !sent; {
			n := b.core.Read(make([]byte, 50))
			require.Positive(t, n, "%v", d)
			read += n
			b.post()
			w.runUntilIdle()
			sent = a.core.SendUrgent([]byte("!")) == 1
			a.post()
		}
		for ahead := 0; ahead != 1; read++ {
			w.runUntilIdle()
			if ahead, announced = b.core.Urgent(); ahead > 0 {
				require.False(t, announced, "it is there")
			}
			require.Equal(t, 1, b.core.Read(make([]byte, 1)))
			b.post()
		}
		require.Equal(t, int(a.core.Stats().BytesWritten), read)
	}
}

// TestUrgentInParts checks that the last byte of a partly accepted call is urgent when the
// remaining bytes are accepted.
func TestUrgentInParts(t *testing.T) {
	w, a, b := pair(t, flow.Credit)
	a.core.peer.MaxAdverts = 0
	p := make([]byte, 1000) // 8 buffers of 100
	require.Equal(t, 800, a.core.SendUrgent(p))
	for _, wr := range a.core.Sends() {
		require.Zero(t, bsdh.Flags(a.cfg.Send.Bytes[wr.SGList[0].Addr-a.cfg.Send.Addr+1])&bsdh.OOBPresent)
	}
	a.post()
	w.runUntilIdle()
	require.Equal(t, 800, b.core.Read(p))
	b.post()
	w.runUntilIdle()
	require.Equal(t, 200, a.core.SendUrgent(p[800:]))
	a.post()
	w.runUntilIdle()
	ahead, announced := b.core.Urgent()
	require.Equal(t, 200, ahead)
	require.False(t, announced)
}

// TestKeepAlive checks that a keepalive is a WRITE of 0 bytes, which the peer's software does not
// see.
func TestKeepAlive(t *testing.T) {
	for _, d := range allFlowControls {
		w, a, b := pair(t, d)
		received := b.core.received
		require.True(t, a.core.SendKeepAlive())
		require.False(t, a.core.SendKeepAlive(), "one at a time")
		sends := a.core.Sends()
		require.Len(t, sends, 1)
		require.Equal(t, verbs.WRRDMAWrite, sends[0].Opcode)
		require.Empty(t, sends[0].SGList)
		require.Equal(t, verbs.SendSignaled, sends[0].Flags)
		a.post()
		require.True(t, a.core.probing)
		w.runUntilIdle()
		require.False(t, a.core.probing)
		require.True(t, a.core.SendKeepAlive())
		require.Equal(t, received, b.core.received)

		a.core.HandleCompletion(&verbs.WC{WRID: kindAlive.wrid(0), Status: verbs.WCRetryExcErr})
		require.ErrorIs(t, a.core.Err(), ErrReset, "nobody there")
		require.False(t, a.core.SendKeepAlive())
	}
}
