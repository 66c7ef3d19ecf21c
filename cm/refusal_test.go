package cm_test

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestDialRefusedBySystem checks that a dial to which the system sends nothing fails with the
// system's error when the second attempt is refused, long before the retransmissions are exhausted.
func TestDialRefusedBySystem(t *testing.T) {
	a := newEnd(t, cm.Options{})
	gone, err := rnic.Open(rnic.Options{Addr: ownaddr.Device(50)}) // stays free
	require.NoError(t, err)
	closed := gone.Addr()
	require.NoError(t, gone.Close())
	for _, test := range []struct {
		adapter netip.AddrPort
		text    string
	}{
		{closed, "connection refused"},
		{netip.MustParseAddrPort("192.0.2.1:4791"), "the system refuses to send to 192.0.2.1:4791"}, // not from a loopback address
	} {
		at := netip.AddrPortFrom(test.adapter.Addr(), 7)
		for _, dial := range []func() error{
			func() error {
				_, err := a.m.Dial(soon(t), at, a.newQP(t, verbs.RC), cm.DialOptions{UDPPort: test.adapter.Port()})
				return err
			},
			func() error {
				_, err := a.m.DialUD(soon(t), at, cm.UDDialOptions{UDPPort: test.adapter.Port()})
				return err
			},
		} {
			before := a.m.Stats().Retransmitted
			err := dial()
			require.ErrorIs(t, err, cm.ErrUnreachable)
			var refused *verbs.RefusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, test.adapter, refused.Peer)
			require.ErrorIs(t, err, refused.Err)
			require.NotEqual(t, syscall.Errno(0), refused.Err)
			require.ErrorContains(t, err, test.text)
			require.EqualValues(t, 1, a.m.Stats().Retransmitted-before, "messages sent again")
			require.Less(t, len(err.Error()), 250)
		}
	}
	require.Zero(t, a.m.Stats().Connections)
}
