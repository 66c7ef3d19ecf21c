package sdp_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestKeepAliveTime checks that a peer is probed after an idle time of the keepalive, and an eighth
// of that later at most: after data, and after its last response.
func TestKeepAliveTime(t *testing.T) {
	for _, talks := range []int{0, 1, 2, sdp.Looks, 3*sdp.Looks + 1} { // samples that find data
		for _, answers := range []int{0, 1, 2, 5} { // probes with a response before the peer fails
			look := sdp.NewVigil()
			var heard uint32
			for range talks {
				heard += 3
				require.False(t, look(heard))
			}
			most := sdp.Looks // the first sample after the last response may find it
			for asked := 0; asked <= answers; asked++ {
				n := 1
				for ; !look(heard); n++ {
					require.Less(t, n, most, "after %d probes", asked)
				}
				require.GreaterOrEqual(t, n, sdp.Looks, "not before its time")
				heard++
				most = sdp.Looks + 1
			}
		}
	}
}

// TestKeepAliveSampling checks that the sampling interval is that of the keepalive, also after a
// change.
func TestKeepAliveSampling(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{KeepAlive: time.Hour})
	a, _ := e.dial(t)
	require.Equal(t, time.Hour, sdp.Looks*a.WatchedEvery())
	for _, c := range []struct {
		set  func() error
		want time.Duration
	}{
		{func() error { return a.SetKeepAlivePeriod(time.Minute) }, time.Minute},
		{func() error { return a.SetKeepAlive(false) }, 0},
		{func() error { return a.SetKeepAlivePeriod(2 * time.Minute) }, 0},
		{func() error { return a.SetKeepAlive(true) }, 2 * time.Minute},
		{func() error { return a.SetKeepAlivePeriod(-1) }, 2 * time.Minute},
		{func() error { return a.SetKeepAlivePeriod(0) }, time.Hour},
		{func() error { return a.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second}) }, 3 * time.Second},
		{func() error { return a.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: -1}) }, 3 * time.Second},
		{func() error { return a.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true}) }, time.Hour},
		{func() error { return a.SetKeepAliveConfig(net.KeepAliveConfig{}) }, 0},
	} {
		require.NoError(t, c.set())
		require.Equal(t, c.want, sdp.Looks*a.WatchedEvery())
	}
	never := newEnds(t, rnic.Options{}, sdp.Options{KeepAlive: -1})
	a, _ = never.dial(t)
	require.Zero(t, a.WatchedEvery())
	require.NoError(t, a.SetKeepAlive(true))
	require.Equal(t, sdp.DefaultKeepAlive, sdp.Looks*a.WatchedEvery())
}

// TestKeepAliveOfDialer checks that a dialer's keepalive determines when its connection fails.
func TestKeepAliveOfDialer(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{KeepAlive: time.Minute})
	l, err := e.b.ListenPort(0, 0)
	require.NoError(t, err)
	defer l.Close()
	for keepAlive, timeout := range map[time.Duration]uint8{0: 16, time.Second: 14, time.Hour: 16} {
		c, err := e.a.DialAddr(t.Context(), l.Addr().(sdp.Addr).AddrPort, sdp.Dialer{UDPPort: e.port, KeepAlive: keepAlive})
		require.NoError(t, err)
		require.Equal(t, timeout, c.AckTimeout(), "%v", keepAlive)
		require.NoError(t, c.Close())
	}
}

// TestKeepAliveGrid checks that connections that are opened at any time are sampled at the same
// points, each at intervals that do not change.
func TestKeepAliveGrid(t *testing.T) {
	for _, interval := range []time.Duration{1, time.Millisecond, 7500 * time.Millisecond} {
		points := map[time.Duration]bool{}
		for i := range 1000 {
			opened := time.Unix(1700000000, int64(i)*7919*int64(time.Microsecond))
			first := sdp.UntilSample(interval, opened)
			require.LessOrEqual(t, first, interval)
			require.Greater(t, first, interval-max(interval/8, 1))
			sampled := opened.Add(first)
			points[time.Duration(sampled.UnixNano())%interval] = true
			require.Equal(t, interval, sdp.UntilSample(interval, sampled))
		}
		require.LessOrEqual(t, len(points), 8)
	}
}
