package flow

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPushSendsDeferred checks that deferred data is sent by a push, or at a cut, but not more
// than the adapter accepts.
func TestPushSendsDeferred(t *testing.T) {
	s := NewNICSender(make([]byte, 64), 64, 1000, 32, 100) // 8 bytes keep it busy, 56 are the maximum
	write := func(n int) (sent int) {
		require.Equal(t, n, s.Write(make([]byte, n)))
		for m, ok := s.Next(); ok; m, ok = s.Next() {
			sent += m.Len
		}
		return sent
	}
	require.Equal(t, 8, write(8))
	require.Zero(t, write(4))
	require.EqualValues(t, 12, s.EndMessage())
	require.Equal(t, 4, write(0))
	require.Zero(t, write(4), "what comes behind it waits again")
	s.Flush()
	require.Equal(t, 4, write(0))
	require.Equal(t, 32, write(32))
	require.Zero(t, write(16))
	s.Flush()
	require.Zero(t, write(0), "there is no room in the adapter")
}

// TestShortWindowsCoalesce checks that short windows are coalesced once three eighths of the buffer are
// used by them, while the adapter is busy.
func TestShortWindowsCoalesce(t *testing.T) {
	s := NewNICSender(make([]byte, 64), 64, 1000, 8, 100)
	write := func(n int) (sent []int) {
		require.Equal(t, n, s.Write(make([]byte, n)))
		for m, ok := s.Next(); ok; m, ok = s.Next() {
			sent = append(sent, m.Len)
		}
		return sent
	}
	require.Equal(t, []int{8}, write(8), "nothing is in flight")
	require.Empty(t, write(8))
	require.Empty(t, write(15))
	require.Equal(t, []int{8, 8, 8}, write(2))
	require.Empty(t, write(8), "the ninth byte is of the next three")
	require.Equal(t, []int{8, 8, 8}, write(64-41), "the buffer is full, and then what the adapter may have")
	s.CompleteUpTo(32)
	require.Equal(t, []int{8}, write(0))
	s.CompleteUpTo(64)
	require.Equal(t, []int{8, 8}, write(20), "the adapter was idle at first")

	s = NewNICSender(make([]byte, 64), 64, 1000, 8, 100)
	require.Equal(t, []int{8}, write(8))
	require.Equal(t, []int{8, 8, 8}, write(24))
	require.Empty(t, write(16))
	s.Flush()
	require.Equal(t, []int{8, 8}, write(0))
	require.Empty(t, write(16), "the buffer is full, and a completion will come")
	s.CompleteUpTo(48)
	require.Equal(t, []int{8, 8}, write(0))
}

// TestPushDoesNotMoveCut checks that a push does not move a cut: the message before it ends there.
func TestPushDoesNotMoveCut(t *testing.T) {
	s := NewNICSender(make([]byte, 64), 64, 1000, 32, 100)
	s.Write(make([]byte, 8))
	m, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, 8, m.Len)
	s.Write(make([]byte, 3))
	require.EqualValues(t, 11, s.EndMessage())
	s.Write(make([]byte, 5))
	s.Flush()
	for _, want := range []int{3, 5} {
		m, ok = s.Next()
		require.True(t, ok)
		require.Equal(t, want, m.Len)
	}
}
