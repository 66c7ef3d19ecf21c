package sched

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestPrompt checks that a Slice shortens the time slices of the thread and makes them usual again, if
// the kernel supports that, and changes no other attribute.
func TestPrompt(t *testing.T) {
	runtime.LockOSThread() // not unlocked, so that no other goroutine gets this thread
	before, err := unix.SchedGetAttr(0, 0)
	require.NoError(t, err)
	if before.Runtime == 0 {
		t.Skip("this kernel has one length of turns for all")
	}
	getSlice := func() uint64 {
		attr, err := unix.SchedGetAttr(0, 0)
		require.NoError(t, err)
		return attr.Runtime
	}
	slice := OpenSlice()
	require.Equal(t, before.Runtime, getSlice())
	slice.SetShort(true)
	require.EqualValues(t, promptSlice, getSlice())
	slice.SetShort(false)
	require.Equal(t, before.Runtime, getSlice())
	slice.SetShort(true)
	require.EqualValues(t, promptSlice, getSlice())
	require.True(t, slice.Restore())
	after, err := unix.SchedGetAttr(0, 0)
	require.NoError(t, err)
	require.Equal(t, before, after)
}
