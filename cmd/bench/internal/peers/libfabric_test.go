package peers

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

func TestMain(m *testing.M) {
	proc.ServeIfWorker()
	goleak.VerifyTestMain(m)
}

// Output of fi_pingpong of libfabric 1.17.
const fabricOutput = `bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
64k     1k      =1k      125m        0.34s    389.75     168.15       0.01
`

func TestParseFabric(t *testing.T) {
	f, err := parseFabric(fabricOutput)
	require.NoError(t, err)
	require.Equal(t, FabricResult{Micros: 168.15, MBps: 389.75}, f)

	for _, bad := range []string{
		"", "bytes\n", "fi_getinfo(): -61\nsome more\n",
		"bytes MB/sec usec/xfer\n64k 389.75 fast\n", "bytes MB/sec usec/xfer\n64k 389.75\n", "bytes MB/sec usec/xfer\n64k 389.75 0\n",
		"bytes usec/xfer\n64k 3\n",
	} {
		_, err := parseFabric(bad)
		require.Error(t, err, "%q", bad)
	}
}

func TestFabricPingPong(t *testing.T) {
	if !HasLibfabric() {
		t.Skip("libfabric is not installed (Debian: libfabric-bin)")
	}
	f, err := FabricPingPong(t.Context(), RXD, 8, 50)
	require.NoError(t, err)
	require.Positive(t, f.Micros)
}

// The error of the server reaches the caller.
func TestProgramFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no shell to fail in")
	}
	_, err := runPair(t.Context(), []string{"/bin/sh", "-c", "echo no such fabric >&2; exit 3"}, []string{"/bin/sh", "-c", "exit 0"})
	require.ErrorContains(t, err, "no such fabric")
}
