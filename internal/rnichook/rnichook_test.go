package rnichook_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/rnic"
)

// TestOpen opens a device with the three hooks. An idle device has no deadline.
func TestOpen(t *testing.T) {
	addr := netip.MustParseAddrPort("192.0.2.1:4791")
	conn, err := memory.NewLive().Attach(addr, memory.Options{})
	require.NoError(t, err)
	clocks, randoms := 0, 0
	dev, err := rnic.Open(rnichook.WithHooks(rnic.Options{NoService: true}, rnichook.Hooks{
		Conn:  conn,
		Clock: func() int64 { clocks++; return int64(clocks) },
		Rand:  func() uint32 { randoms++; return uint32(randoms) },
	}))
	require.NoError(t, err)
	defer dev.Close()
	require.Equal(t, addr, dev.Addr())
	require.NotZero(t, dev.Inspect().Now)
	require.NotZero(t, clocks)
	pd, err := dev.AllocPD()
	require.NoError(t, err)
	_, err = pd.AllocMW()
	require.NoError(t, err)
	require.NotZero(t, randoms, "keys are random")
	require.Zero(t, rnichook.NextTimer(dev))
}
