package cm_test

import (
	"io"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestCloseTwice checks that every object is an io.Closer, and that a second Close returns nil.
func TestCloseTwice(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	ca, cb := connect(t, a, b, cm.DialOptions{}, cm.AcceptOptions{})
	l, err := a.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	ul, err := a.m.ListenUD(0, cm.ListenOptions{})
	require.NoError(t, err)
	group, err := a.m.Join(netip.MustParseAddr("239.1.2.3"), cm.UDQueuePair{QP: a.newQP(t, verbs.UD)})
	require.NoError(t, err)
	dev, err := rnic.Open(rnic.Options{})
	require.NoError(t, err)
	defer dev.Close()
	m, err := cm.New(dev, cm.Options{})
	require.NoError(t, err)
	for name, c := range map[string]io.Closer{
		"Conn": ca, "Listener": l, "UDListener": ul, "Multicast": group, "Manager": m,
	} {
		require.NoError(t, c.Close(), name)
		require.NoError(t, c.Close(), name)
	}
	<-cb.Done()
	require.NoError(t, cb.Close(), "the peer has closed it")
	require.ErrorIs(t, ca.Err(), cm.ErrClosed)
}
