package rdm_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
)

// TestPeerRefusedBySystem checks that a closed port is detected by a dial, and by messages to a
// peer that was there, long before the peer would time out, and that others are unaffected.
func TestPeerRefusedBySystem(t *testing.T) {
	a, other := endpoint(t, "", rdm.Options{GiveUp: time.Hour}), endpoint(t, "", rdm.Options{})
	dev, err := rnic.Open(rnic.Options{Addr: ownaddr.Device(51)}) // stays free
	require.NoError(t, err)
	b, err := rdm.Open(dev, rdm.Options{})
	require.NoError(t, err)
	ctx := guarded(t)
	p, err := a.Dial(ctx, b.Addr())
	require.NoError(t, err)
	q, err := a.Dial(ctx, other.Addr())
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.NoError(t, dev.Close())

	require.NoError(t, p.Send(ctx, []byte("x")))
	for p.Err() == nil {
		require.NoError(t, ctx.Err())
		a.Progress()
	}
	require.ErrorIs(t, p.Err(), rdm.ErrTimeout)
	require.ErrorIs(t, p.Err(), syscall.ECONNREFUSED)

	gone := b.Addr()
	gone.QPN, gone.ID = gone.QPN^1, gone.ID+1
	_, err = a.Dial(ctx, gone)
	require.ErrorIs(t, err, rdm.ErrUnreachable)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	require.NoError(t, q.Send(ctx, []byte("y")))
	buf := make([]byte, 8)
	n, _, err := other.Recv(ctx, buf)
	require.NoError(t, err)
	require.Equal(t, "y", string(buf[:n]))
}
