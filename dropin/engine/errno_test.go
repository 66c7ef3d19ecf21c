package main

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReportPanic checks that panics of several threads end the process with one report and status 134.
func TestReportPanic(t *testing.T) {
	if os.Getenv("DROPIN_TEST_PANIC") != "" {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				defer reportPanic()
				panic("the cause")
			})
		}
		all.Wait()
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^TestReportPanic$")
	c.Env = append(os.Environ(), "DROPIN_TEST_PANIC=1")
	out, err := c.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 134, c.ProcessState.ExitCode(), string(out))
	require.Equal(t, 1, strings.Count(string(out), "softrnic: internal error: the cause"), string(out))
	require.Contains(t, string(out), "Please report it")
	require.Contains(t, string(out), "TestReportPanic", "the stack")
}
