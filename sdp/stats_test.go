package sdp_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestStatsOfFullBuffers checks the statistics of full buffers, with a peer that does not read.
func TestStatsOfFullBuffers(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		o.Buffers, o.BufferBytes, o.ZeroCopy = 8, 8<<10, -1
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		idle := a.Stats()
		require.Equal(t, o.FlowControl, idle.FlowControl)
		require.Equal(t, 64<<10, idle.BufferSize)
		require.Zero(t, idle.SendUsed+idle.Held+idle.ReceiveUsed)
		require.Greater(t, idle.Registered, 2*idle.BufferSize, "a send buffer, and receives")
		require.Positive(t, idle.Receives)
		if o.FlowControl == sdp.NIC {
			require.Zero(t, idle.Credits, "the adapter has them")
		} else {
			require.Positive(t, idle.Credits)
		}

		const total, piece = 512 << 10, 1 << 10
		written := make(chan error, 1)
		go func() {
			p := make([]byte, piece)
			for range total / piece {
				if _, err := a.Write(p); err != nil {
					written <- err
					return
				}
			}
			written <- a.CloseWrite()
		}()
		// Eight messages of one segment fill the buffers of Credit. The others fill both sides,
		// except for a part of a window at the peer (NIC), and arrived data that was not signaled
		// locally.
		var full sdp.Stats
		require.Eventually(t, func() bool {
			full = a.Stats()
			if o.FlowControl == sdp.Credit {
				return full.Stalls > 0 && full.BytesWritten == 8*piece
			}
			return full.Stalls > 0 && full.BytesWritten > uint64(full.BufferSize*3/2) && full.SendUsed == full.BufferSize
		}, hang, hang/10000, "more is written than there is room for")
		require.LessOrEqual(t, full.Held, full.SendUsed)
		if o.FlowControl == sdp.Credit {
			require.Zero(t, full.Held+full.Credits)
			require.EqualValues(t, 8, full.MessagesSent, "one for each of the peer's buffers")
		} else {
			require.Positive(t, full.Held)
			require.Positive(t, full.Coalesced)
		}

		n, err := io.Copy(io.Discard, b)
		require.NoError(t, err)
		require.EqualValues(t, total, n)
		require.NoError(t, <-written)
		sent, received := a.Stats(), b.Stats()
		require.EqualValues(t, total, sent.BytesWritten)
		require.EqualValues(t, total, received.BytesRead)
		require.EqualValues(t, total, received.BytesReceived)
		require.Equal(t, sent.MessagesSent, received.MessagesReceived)
		require.Positive(t, received.CreditUpdates+received.Controls+uint64(received.Receives))
		if o.FlowControl == sdp.Credit {
			require.EqualValues(t, total/piece, sent.MessagesSent)
			require.Zero(t, sent.Coalesced)
		} else {
			require.Less(t, sent.MessagesSent, uint64(total/piece), "some were coalesced")
		}
		require.Zero(t, received.ReceiveUsed)
		require.Zero(t, sent.ZeroCopySent+received.ZeroCopyReceived)
	})
}

// TestStatsOfZeroCopy checks that large Writes to large Reads are counted as zero-copy.
func TestStatsOfZeroCopy(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		o.OfferTime = hang
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		const total = 1 << 20
		written := make(chan error, 1)
		go func() {
			_, err := a.Write(make([]byte, total))
			written <- err
		}()
		_, err := io.ReadFull(b, make([]byte, total))
		require.NoError(t, err)
		require.NoError(t, <-written)
		sent, received := a.Stats(), b.Stats()
		require.EqualValues(t, total, sent.ZeroCopySent+received.BytesReceived)
		require.EqualValues(t, total-received.BytesReceived, received.ZeroCopyReceived)
		require.Positive(t, received.ZeroCopyReceived)
		require.EqualValues(t, 1, sent.Offers)
		require.Zero(t, sent.OffersRefused)
		require.NoError(t, a.Close())
		require.EqualValues(t, total, a.Stats().BytesWritten, "Stats stays when the connection is closed")
	})
}

// TestOfferCanceled checks that memory that is not read in time is taken back, counts as a
// refusal, and is sent by copies.
func TestOfferCanceled(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		require.NoError(t, a.SetDeadline(time.Now().Add(hang)))
		require.NoError(t, b.SetDeadline(time.Now().Add(hang)))
		sent := random(sdp.DefaultZeroCopy, 1)
		_, err := a.Write(sent) // not read
		require.NoError(t, err)
		s := a.Stats()
		require.EqualValues(t, 1, s.Offers)
		require.EqualValues(t, 1, s.OffersRefused)
		require.Zero(t, s.ZeroCopySent)
		require.EqualValues(t, len(sent), s.BytesWritten)
		go func() { _, _ = a.Read(make([]byte, 1)) }() // with RDMA deferred data is sent in a call
		got := make([]byte, len(sent))
		_, err = io.ReadFull(b, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(sent, got))
	})
}

// TestMeasureBufferUse checks that the measured use is positive, and at most the size of the buffers.
func TestMeasureBufferUse(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		o.Buffers, o.BufferBytes, o.ZeroCopy = 8, 8<<10, -1
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		first, size := a.MeasureBufferUse(), float64(a.Stats().BufferSize)
		stop, stopB := a.MeasureBufferUse(), b.MeasureBufferUse()
		require.Zero(t, first().Send, "another has begun")

		exchange := func() {
			answered := make(chan error, 1)
			go func() {
				_, err := io.ReadFull(b, make([]byte, 4096))
				if err == nil {
					_, err = b.Write([]byte{1})
				}
				answered <- err
			}()
			_, err := a.Write(make([]byte, 4096))
			require.NoError(t, err)
			_, err = a.Read(make([]byte, 1)) // with RDMA deferred data waits for a call
			require.NoError(t, err)
			require.NoError(t, <-answered)
		}
		for range 100 {
			exchange()
		}
		u, v := stop(), stopB()
		require.Positive(t, u.Over)
		require.Positive(t, u.Send)
		require.LessOrEqual(t, u.Send, size)
		require.Less(t, u.Receive, 2.0, "bytes of answers")
		require.Positive(t, v.Receive)
		require.LessOrEqual(t, v.Receive, size)
		exchange()
		require.Equal(t, u, stop(), "it has ended")
	})
}
