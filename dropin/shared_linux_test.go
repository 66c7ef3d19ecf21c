package dropin_test

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSharedAddress runs perftest between two processes at one address, and kills the first process
// of the address, which has bound its sockets, when they connect.
func TestSharedAddress(t *testing.T) {
	needPrograms(t, "ib_send_bw")
	environ := []string{"SOFTRNIC_ADDR=127.0.113.7"}
	port, other := freePort(t), freePort(t)
	perftest := func(port string, args ...string) command {
		return command{args: append([]string{"ib_send_bw", "-x", "0", "-n", "100000", "-p", port}, args...), environ: environ}
	}
	first, firstEnd := perftest(other).start(t)
	waitListening(t, other) // its device is open
	_, server := perftest(port).start(t)
	waitListening(t, port)
	_, client := perftest(port, "127.0.0.1").start(t)
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
	needPrograms(t, "ib_send_bw", "ibv_devinfo")
	environ := []string{"SOFTRNIC_ADDR=127.0.113.8", "SOFTRNIC_SHARE=0"}
	port := freePort(t)
	holder, _ := command{args: []string{"ib_send_bw", "-x", "0", "-p", port}, environ: environ}.start(t)
	waitListening(t, port)
	end := command{args: []string{"ibv_devinfo"}, environ: environ}.runProgram(t)
	require.NoError(t, holder.Process.Kill())
	require.NotZero(t, end.code, end)
	require.Contains(t, end.stderr, "127.0.113.8", end)
}

// freePort returns a TCP port that no program listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// waitListening waits until a program listens on a TCP port, by the tables of the kernel: a connection
// would be taken for a client.
func waitListening(t *testing.T, port string) {
	t.Helper()
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	listening := regexp.MustCompile(fmt.Sprintf(`(?m):%04X [0-9A-F]+:0000 0A `, number))
	require.Eventually(t, func() bool {
		v4, _ := os.ReadFile("/proc/net/tcp")
		v6, _ := os.ReadFile("/proc/net/tcp6")
		return listening.Match(v4) || listening.Match(v6)
	}, 20*time.Second, 20*time.Millisecond, "no program listens on port %s", port)
}
