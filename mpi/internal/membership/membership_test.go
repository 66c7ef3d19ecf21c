package membership_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/membership"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// TestFailedStart checks that a rank without a fabric does not make the others wait, and that
// they know its reason.
func TestFailedStart(t *testing.T) {
	failed := errors.New("no adapter")
	err := pmi.RunLocal(2, time.Minute, func(manager pmi.Manager) error {
		c := overTCP(manager)
		if manager.Rank() == 1 {
			c.OpenFabric = func(fabric.Host) (fabric.Fabric, io.Closer, error) { return nil, nil, failed }
		}
		m, err := membership.Join(t.Context(), c)
		if manager.Rank() == 1 {
			require.Nil(t, m)
			require.ErrorIs(t, err, failed)
			return nil
		}
		require.NoError(t, err)
		require.Contains(t, m.Placement.DescribeRank(1), "no adapter")
		return m.Close(t.Context())
	})
	require.NoError(t, err)
}

// TestDeparture checks that a rank whose last barrier fails does not join the last fence, and that
// the other rank learns the reason instead of waiting for it.
func TestDeparture(t *testing.T) {
	err := pmi.RunLocal(2, time.Minute, func(manager pmi.Manager) error {
		m, err := membership.Join(t.Context(), overTCP(manager))
		if err != nil {
			return err
		}
		m.Detector.Start()
		exchangeByte(t, m) // a departure is announced to ranks that have exchanged packets
		barrier := func() error { return nil }
		if manager.Rank() == 1 {
			barrier = func() error { return errors.New("barrier failed") }
		}
		fenced, err := m.Synchronize(t.Context(), membership.LastCalls{Name: "world", Barrier: barrier,
			Fail: func(_ string, err error) error { return err }})
		if manager.Rank() == 1 {
			require.ErrorContains(t, err, "barrier failed")
			require.True(t, fenced, "no fence is pending")
		} else {
			require.ErrorIs(t, err, protocol.ErrLost)
			require.ErrorContains(t, err, "barrier failed")
			require.False(t, fenced)
		}
		_ = m.Close(t.Context())
		return nil
	})
	require.NoError(t, err)
}

// exchangeByte exchanges a message with the other rank of two.
func exchangeByte(t *testing.T, m *membership.Membership) {
	t.Helper()
	other := 1 - m.Engine.Rank()
	send := &protocol.Request{Dest: other, Buf: []byte{1}, Envelope: match.Envelope{Context: 4}}
	receive := &protocol.Request{Buf: make([]byte, 1), Envelope: match.Envelope{Context: 4, Source: int32(other)}}
	require.NoError(t, m.Engine.Receive(receive))
	require.NoError(t, m.Engine.Send(send))
	require.NoError(t, m.Engine.Wait(t.Context(), receive))
	require.NoError(t, m.Engine.Wait(t.Context(), send))
}
