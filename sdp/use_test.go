package sdp_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// What is measured is there, and no more than there is room for.
func TestMeasureUse(t *testing.T) {
	eachDesign(t, func(t *testing.T, o sdp.Options) {
		o.Buffers, o.BufferBytes, o.ZeroCopy = 8, 8<<10, -1
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		first, size := a.MeasureUse(), float64(a.Stats().BufferSize)
		stop, stopB := a.MeasureUse(), b.MeasureUse()
		require.Zero(t, first().Send, "another has begun")

		exchange := func() {
			_, err := a.Write(make([]byte, 4096))
			require.NoError(t, err)
			_, err = io.ReadFull(b, make([]byte, 4096))
			require.NoError(t, err)
		}
		for range 10 { // less than the ring has room for: with RDMA the rest would wait for another call
			exchange()
		}
		u, v := stop(), stopB()
		require.Positive(t, u.Over)
		require.Positive(t, u.Send)
		require.LessOrEqual(t, u.Send, size)
		require.Zero(t, u.Receive)
		require.Positive(t, v.Receive)
		require.LessOrEqual(t, v.Receive, size+float64(a.Stats().BufferSize))
		exchange()
		require.Equal(t, u, stop(), "it has ended")
	})
}
