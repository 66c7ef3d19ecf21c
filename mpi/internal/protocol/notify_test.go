package protocol

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNotifications checks that an unexpected notification is a protocol violation, and that one of a
// lost rank is ignored.
func TestNotifications(t *testing.T) {
	e := newEvil(t, RendezvousRead)
	require.ErrorIs(t, e.core.HandleNotify(1, 7), ErrProtocol)
	why := errors.New("not due")
	var heard []uint32
	e.core.OnNotify = func(from int, notice uint32) error {
		require.Equal(t, 1, from)
		if heard = append(heard, notice); notice == 8 {
			return why
		}
		return nil
	}
	require.NoError(t, e.core.HandleNotify(1, 7))
	err := e.core.HandleNotify(1, 8)
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorIs(t, err, why)
	e.core.FailPeer(1, errGone)
	require.NoError(t, e.core.HandleNotify(1, 9))
	require.Equal(t, []uint32{7, 8}, heard)

	// A net without notifications.
	for _, r := range []*Request{{Dest: 1, Buf: make([]byte, 8)}, {Dest: 1}} {
		e.core.PutNotify(r, r.key, 1)
		require.ErrorIs(t, r.Err, errors.ErrUnsupported)
	}
}
