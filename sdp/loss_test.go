package sdp_test

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// lossy is a network that loses every twentieth packet in each direction.
func lossy(t *testing.T, seed uint64) rnic.Options {
	t.Helper()
	t.Logf("seed %d", seed)
	return rnic.Options{Impair: fmt.Sprintf("loss 5%% seed %d", seed)}
}

// TestLossyConn runs nettest on a lossy network.
func TestLossyConn(t *testing.T) {
	some := designs
	if testing.Short() {
		some = some[:1]
	}
	for _, d := range some {
		t.Run(d.String(), func(t *testing.T) {
			e := newEnds(t, lossy(t, uint64(time.Now().UnixNano())), sdp.Options{FlowControl: d})
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				a, b := e.dial(t)
				return a, b, func() { a.Close(); b.Close() }, nil
			})
		})
	}
}

// TestLossyStream sends in both directions at once, with copies and zero-copy.
func TestLossyStream(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		lossyStream(t, o)
	})
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		o.ZeroCopy, o.OfferTime = 64<<10, hang
		for _, c := range lossyStream(t, o) {
			require.Positive(t, c.Stats().ZeroCopySent)
		}
	})
}

// lossyStream sends in both directions at once in segments of 256 KiB.
func lossyStream(t *testing.T, o sdp.Options) [2]*sdp.Conn {
	t.Helper()
	const size = 2 << 20
	a, b := newEnds(t, lossy(t, uint64(time.Now().UnixNano())), o).dial(t)
	ends := [2]*sdp.Conn{a, b}
	var all sync.WaitGroup
	for i, c := range ends {
		all.Go(func() {
			if _, err := c.ReadFrom(stream(int64(i), size)); err != nil {
				t.Error(err)
			}
			if err := c.CloseWrite(); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() { checkStream(t, c, int64(1-i), size) })
	}
	all.Wait()
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	return ends
}
