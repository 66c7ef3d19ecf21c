package sdp_test

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestNoLinger: with no time to linger a Close is a reset.
func TestNoLinger(t *testing.T) {
	eachDesign(t, func(t *testing.T, o sdp.Options) {
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		require.NoError(t, a.SetLinger(0))
		require.NoError(t, a.Close())
		require.True(t, errors.Is(a.SetLinger(0), net.ErrClosed))
		require.NoError(t, b.SetReadDeadline(time.Now().Add(hang)))
		_, err := b.Read(make([]byte, 1))
		require.True(t, errors.Is(err, sdp.ErrReset), "%v", err)
	})
}

// TestLinger: what was written arrives, though the connection is closed at once.
func TestLinger(t *testing.T) {
	eachDesign(t, func(t *testing.T, o sdp.Options) {
		o.ZeroCopy = -1
		e := newEnds(t, rnic.Options{}, o)
		for _, seconds := range []int{int(hang / time.Second), -1, math.MaxInt} {
			a, b := e.dial(t)
			require.NoError(t, a.SetLinger(seconds))
			sent := random(200_000, 1) // on the way, or still here
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

// TestDrainTellsOfLoss: Close promises to send what was written; Drain tells where that was not
// possible, once, and not of what was to be dropped.
func TestDrainTellsOfLoss(t *testing.T) {
	eachDesign(t, func(t *testing.T, o sdp.Options) {
		o.ZeroCopy, o.Buffers, o.BufferBytes, o.Linger = -1, 8, 1024, 20*time.Millisecond
		e := newEnds(t, rnic.Options{}, o)
		fill := func() *sdp.Conn {
			a, _ := e.dial(t)
			require.NoError(t, a.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
			_, err := a.Write(make([]byte, 1<<20)) // more than fits anywhere, to one who does not read
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			return a
		}
		a := fill()
		require.NoError(t, a.Close())
		err := e.a.Drain(soon(t))
		if o.Design == sdp.Credit { // whose Write waits for credits: what it has taken is there
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, "bytes are not known to have arrived")
		require.ErrorContains(t, err, a.RemoteAddr().String())
		require.NoError(t, e.a.Drain(soon(t)), "it has been told")

		a = fill()
		require.NoError(t, a.SetLinger(0))
		require.NoError(t, a.Close())
		require.NoError(t, e.a.Drain(soon(t)))
	})
}
