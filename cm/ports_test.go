package cm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
)

// TestPortsAreQuarantined checks that the port of a closed listener is not reused while others are free.
func TestPortsAreQuarantined(t *testing.T) {
	e := newEnd(t, cm.Options{})
	seen := map[uint16]bool{}
	for range 2000 {
		l, err := e.m.Listen(0, cm.ListenOptions{})
		require.NoError(t, err)
		require.False(t, seen[l.Addr().Port()], "port %v comes back", l.Addr())
		seen[l.Addr().Port()] = true
		require.NoError(t, l.Close())
	}
}
