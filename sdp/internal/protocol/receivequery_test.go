package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/flow"
)

// TestReceiveQuery checks that with NIC flow control memory is lent only when the peer is known to have a
// receive for the message, and that a query is answered when there is one.
func TestReceiveQuery(t *testing.T) {
	w, a, b := pair(t, flow.NIC)
	require.True(t, a.core.CanOffer(), "the Hello had the receives")
	for a.core.Write(make([]byte, 100)) > 0 {
		a.post()
		w.runUntilIdle()
	}
	require.Zero(t, len(b.rq))
	require.False(t, a.core.CanOffer())
	require.False(t, a.core.CanOfferSink())
	a.core.RequestReceiveUpdate()
	require.Len(t, a.core.Sends(), 1)
	a.core.RequestReceiveUpdate()
	require.Len(t, a.core.Sends(), 1, "once is enough")
	a.post()
	w.runUntilIdle()
	require.False(t, a.core.CanOffer(), "the question is behind the data")

	for b.core.Read(make([]byte, 100)) > 0 {
		b.post()
		w.runUntilIdle()
	}
	// The first reply had receives for the data after the query: that is queried again.
	require.True(t, a.core.CanOffer())
	require.True(t, a.core.CanOfferSink())
	before := b.core.Stats().Controls
	a.core.RequestReceiveUpdate()
	require.Empty(t, a.core.Sends(), "it is known")
	w.runUntilIdle()
	require.Equal(t, before, b.core.Stats().Controls)

	// The offer returns although the peer does not read.
	a.writer.offer(10)
	w.runUntilIdle()
	a.core.CancelOffer()
	a.post()
	w.runUntilIdle()
	require.False(t, a.core.Offering())
}

// TestNoReceiveQuery checks that other flow controls know the receives by credits, or do not need them.
func TestNoReceiveQuery(t *testing.T) {
	for _, d := range allFlowControls[1:] {
		_, a, _ := pair(t, d)
		a.core.RequestReceiveUpdate()
		require.Empty(t, a.core.Sends())
		require.True(t, a.core.CanOffer())
	}
}
