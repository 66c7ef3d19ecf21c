package sched

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Prompt changes how long the thread's turns are, where the kernel knows such a thing,
// and nothing else of it.
func TestPrompt(t *testing.T) {
	runtime.LockOSThread() // for good: nobody else is to have this thread
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
