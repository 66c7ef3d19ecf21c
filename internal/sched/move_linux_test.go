package sched

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestMoveThread checks that a thread moves to another processor, unless it may run on one only, and keeps
// its affinity.
func TestMoveThread(t *testing.T) {
	runtime.LockOSThread() // not unlocked, so that no other goroutine gets this thread
	var all, after, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	require.Equal(t, all.Count() > 1, MoveThread())
	require.NoError(t, unix.SchedGetaffinity(0, &after))
	require.Equal(t, all, after)

	var cpu uint32
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	require.Zero(t, errno)
	one.Set(int(cpu))
	require.NoError(t, unix.SchedSetaffinity(0, &one))
	require.False(t, MoveThread())
	require.NoError(t, unix.SchedGetaffinity(0, &after))
	require.Equal(t, one, after)
}
