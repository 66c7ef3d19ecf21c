package dropin_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

// TestSharedAddress runs perftest between two processes at one address, and kills the first process
// of the address, which has bound its sockets, during the transfer.
func TestSharedAddress(t *testing.T) {
	programtest.NeedPrograms(t, "ib_send_bw")
	environ := []string{"SOFTRNIC_ADDR=127.0.113.7"}
	port, other := programtest.FreePort(t), programtest.FreePort(t)
	perftest := func(port string, args ...string) command {
		return command{args: append([]string{"ib_send_bw", "-x", "0", "-n", "100000", "-p", port}, args...), environ: environ}
	}
	first, firstEnd := perftest(other).start(t)
	programtest.WaitListening(t, other) // its device is open
	_, server := perftest(port).start(t)
	programtest.WaitListening(t, port)
	sender, client := perftest(port, "127.0.0.1").start(t)
	waitBusy(t, sender.Process.Pid) // it sends
	require.NoError(t, first.Process.Kill())
	require.Equal(t, -1, firstEnd().code)
	for _, end := range []result{client(), server()} {
		require.Zero(t, end.code, end)
		require.Contains(t, end.stdout, "100000", end)
	}
}

// TestAddressInUse refuses an address of another process where sharing is switched off: a GID alone
// would not tell the two apart.
func TestAddressInUse(t *testing.T) {
	programtest.NeedPrograms(t, "ib_send_bw", "ibv_devinfo")
	environ := []string{"SOFTRNIC_ADDR=127.0.113.8", "SOFTRNIC_SHARE=0"}
	port := programtest.FreePort(t)
	holder, _ := command{args: []string{"ib_send_bw", "-x", "0", "-p", port}, environ: environ}.start(t)
	programtest.WaitListening(t, port)
	end := command{args: []string{"ibv_devinfo"}, environ: environ}.runProgram(t)
	require.NoError(t, holder.Process.Kill())
	require.NotZero(t, end.code, end)
	require.Contains(t, end.stderr, "127.0.113.8", end)
}
