//go:build interop && linux

package uverbs

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/verbs"
)

// tracing is the folder of the kernel's tracer, and enter that of the event of each system call.
const (
	tracing = "/sys/kernel/tracing"
	enter   = tracing + "/events/raw_syscalls/sys_enter/"
)

// countSystemCalls returns the number of system calls of this thread by their number while f runs,
// including those of the count itself.
func countSystemCalls(t *testing.T, f func()) map[int]int {
	t.Helper()
	trigger := fmt.Sprintf("hist:keys=id:size=512 if common_pid==%d", unix.Gettid())
	require.NoError(t, os.WriteFile(enter+"trigger", []byte(trigger), 0))
	f()
	text, err := os.ReadFile(enter + "hist")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(enter+"trigger", []byte("!"+trigger), 0))
	counts := map[int]int{}
	for line := range strings.Lines(string(text)) {
		var id, n int
		if k, _ := fmt.Sscanf(line, "{ id: %d } hitcount: %d", &id, &n); k == 2 {
			counts[id] = n
		}
	}
	return counts
}

// TestSystemCalls checks that a list of sends costs one write(2), and receives and polls no system call.
// The kernel counts the calls of the thread; those of the count are the same for few lists and for many.
func TestSystemCalls(t *testing.T) {
	if _, err := os.Stat(enter); err != nil {
		require.NoError(t, unix.Mount("tracefs", tracing, "tracefs", 0, ""))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	a, b := pair(t, verbs.RC)
	const each = 8
	sends, receives, wc := make([]verbs.SendWR, each), make([]verbs.RecvWR, each), make([]verbs.WC, 2*each)
	for i := range sends {
		sends[i] = verbs.SendWR{Opcode: verbs.WRSend}
	}
	polls := 0
	post := func(lists int) func() {
		return func() {
			for range lists {
				_, err := b.qp.PostRecv(receives)
				require.NoError(t, err)
				_, err = a.qp.PostSend(sends)
				require.NoError(t, err)
				for _, c := range []verbs.CQ{a.cq, b.cq} {
					for n := 0; n < each; polls++ {
						k, err := c.Poll(wc)
						require.NoError(t, err)
						n += k
					}
				}
			}
		}
	}
	countSystemCalls(t, post(1))
	few, many := countSystemCalls(t, post(100)), countSystemCalls(t, post(500))
	t.Logf("100 lists: %v; 500 lists: %v; %d polls", few, many, polls)
	require.Equal(t, 400, many[unix.SYS_WRITE]-few[unix.SYS_WRITE])
	sameButFor(t, few, many, unix.SYS_WRITE)

	pollEmpty := func(polls int) func() {
		return func() {
			for range polls {
				n, err := a.cq.Poll(wc)
				require.NoError(t, err)
				require.Zero(t, n)
			}
		}
	}
	few, many = countSystemCalls(t, pollEmpty(1)), countSystemCalls(t, pollEmpty(10_000))
	t.Logf("1 poll: %v; 10000 polls: %v", few, many)
	sameButFor(t, few, many)
}

// schedulerCalls are the system calls of Go's scheduler, which preempts the thread about every 10 ms: on a
// clock that only the kernel reads, with a hand-over of the processor, and yields where it spins for a lock.
var schedulerCalls = []int{unix.SYS_RT_SIGRETURN, unix.SYS_CLOCK_GETTIME, unix.SYS_FUTEX, unix.SYS_SCHED_YIELD}

// sameButFor compares counts of system calls, except for some and for those of Go's scheduler.
func sameButFor(t *testing.T, few, many map[int]int, except ...int) {
	t.Helper()
	for id, n := range many {
		if !slices.Contains(append(except, schedulerCalls...), id) {
			require.Equal(t, few[id], n, "system call %d", id)
		}
	}
}
