package sdp_test

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// TestDialRefusedBySystem checks that a dial to which the system sends nothing fails at once, with
// a *net.OpError with the system's error, and is not a timeout.
func TestDialRefusedBySystem(t *testing.T) {
	s := stack(t, rnic.Options{}, sdp.Options{})
	for _, to := range []netip.AddrPort{
		netip.MustParseAddrPort("127.91.91.96:7471"), // no adapter
		netip.MustParseAddrPort("192.0.2.1:7471"),    // not from a loopback address
	} {
		_, err := s.DialAddr(t.Context(), to, sdp.Dialer{})
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "dial", op.Op)
		require.False(t, op.Timeout())
		var refused *verbs.RefusedError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, refused.Err)
		require.ErrorIs(t, err, cm.ErrUnreachable)
		if to.Addr().IsLoopback() {
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		}
		require.Less(t, len(err.Error()), 250)
	}
}
