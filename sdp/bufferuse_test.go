package sdp_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

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
