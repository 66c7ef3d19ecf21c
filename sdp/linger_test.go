package sdp_test

import (
	"errors"
	"io"
	"math"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestNoLinger checks that with a linger time of 0 a Close is a reset.
func TestNoLinger(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		require.NoError(t, a.SetLinger(0))
		require.NoError(t, a.Close())
		require.True(t, errors.Is(a.SetLinger(0), net.ErrClosed))
		require.NoError(t, b.SetReadDeadline(time.Now().Add(hang)))
		_, err := b.Read(make([]byte, 1))
		require.True(t, errors.Is(err, sdp.ErrReset), "%v", err)
	})
}

// TestLinger checks that written data arrives although the connection is closed immediately.
func TestLinger(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		o.ZeroCopy = -1
		e := newEnds(t, rnic.Options{}, o)
		for _, seconds := range []int{int(hang / time.Second), -1, math.MaxInt} {
			a, b := e.dial(t)
			require.NoError(t, a.SetLinger(seconds))
			sent := random(200_000, 1) // in flight, or not sent
			n, err := a.Write(sent)
			require.NoError(t, err)
			require.NoError(t, a.Close())
			require.NoError(t, b.SetReadDeadline(time.Now().Add(hang)))
			got, err := io.ReadAll(b)
			require.NoError(t, err)
			require.Equal(t, sent[:n], got)
		}
	})
}
