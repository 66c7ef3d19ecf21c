package sched

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestPrompt checks that Prompt shortens the time slices of the thread, if the kernel supports
// that, and changes no other attribute.
func TestPrompt(t *testing.T) {
	runtime.LockOSThread() // not unlocked, so that no other goroutine gets this thread
	before, err := unix.SchedGetAttr(0, 0)
	require.NoError(t, err)
	undo := SetShortSlice()
	after, err := unix.SchedGetAttr(0, 0)
	require.NoError(t, err)
	if before.Runtime == 0 {
		t.Skip("this kernel has one length of turns for all")
	}
	require.EqualValues(t, promptSlice, after.Runtime)
	require.True(t, undo())
	after, err = unix.SchedGetAttr(0, 0)
	require.NoError(t, err)
	require.Equal(t, before, after)
}
