package peers

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// Output of ucx_perftest -f of UCX 1.13.
const ucxOutput = `+--------------+--------------+------------------------------+---------------------+-----------------------+
|     Test     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
                        3000      3.641   234.583   446.847      266.43     139.87        4263        2238
`

func TestParseUCX(t *testing.T) {
	us, err := parseUCX(ucxOutput, 2)
	require.NoError(t, err)
	require.Equal(t, 3.641, us)
	mib, err := parseUCX(ucxOutput, 6)
	require.NoError(t, err)
	require.Equal(t, 139.87, mib)
	for _, bad := range []string{"", "Final: 1 2 3\n", "1 2 3 4 5 0 7 8\n", "1 2 3 4 5 x 7 8\n"} {
		_, err := parseUCX(bad, 6)
		require.Error(t, err, "%q", bad)
	}
}

// Output of perftest 4.5, shortened.
const (
	writeBW = `---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      1000             1234.56            1000.00		   0.019682
---------------------------------------------------------------------------------------
`
	writeLat = `---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 8       1000          2.51           13.32        2.60     	       2.65        	0.21		3.10			13.32  
---------------------------------------------------------------------------------------
`
)

func TestParsePerftest(t *testing.T) {
	mbps, err := IBWriteBW.parseTable(writeBW)
	require.NoError(t, err)
	require.InDelta(t, 1048.576, mbps, 1e-9)
	us, err := IBWriteLat.parseTable(writeLat)
	require.NoError(t, err)
	require.Equal(t, 2.60, us)
	for _, bad := range []string{"", "Couldn't connect\n", writeLat, " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]\n 65536 1 2 x\n"} {
		_, err := IBWriteBW.parseTable(bad)
		require.Error(t, err, "%q", bad)
	}
}

func TestUCX(t *testing.T) {
	if !HasUCX() {
		t.Skip("UCX is not installed (Debian: ucx-utils)")
	}
	us, err := UCXLatency(t.Context(), "tcp", 8, 50)
	require.NoError(t, err)
	require.Positive(t, us)
}

func TestTCP(t *testing.T) {
	s, err := OpenTCP(t.Context(), 1000)
	require.NoError(t, err)
	defer s.Close()
	us, err := s.Latency(t.Context(), 50)
	require.NoError(t, err)
	require.Positive(t, us)
	mbps, err := s.Bandwidth(t.Context(), 1<<20)
	require.NoError(t, err)
	require.Positive(t, mbps)
}

// The end of the output of is.S.x of NPB 3.4.
const npbOutput = `
 IS Benchmark Completed
 Class           =                        S
 Size            =                    65536
 Iterations      =                       10
 Time in seconds =                     0.00
 Total processes =                        4
 Active procs    =                        4
 Mop/s total     =                   154.88
 Mop/s/process   =                    38.72
 Operation type  =              keys ranked
 Verification    =               SUCCESSFUL
`

func TestParseNPB(t *testing.T) {
	mops, err := parseNPB(npbOutput)
	require.NoError(t, err)
	require.Equal(t, 154.88, mops)
	for _, bad := range []string{"", strings.ReplaceAll(npbOutput, "  SUCC", "UNSUCC"), strings.ReplaceAll(npbOutput, "154", "many"), "Verification = SUCCESSFUL"} {
		_, err := parseNPB(bad)
		require.Error(t, err)
	}
	_, err = FindNPB(t.Context(), "nothing", "S")
	require.ErrorIs(t, err, exec.ErrNotFound)
}

func TestOpenMPI(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o, err := NewOpenMPI(ctx)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, o.Close()) }()
	tests := []string{"latency", "put-bandwidth", "alltoall"}
	if !testing.Short() {
		tests = append(tests, "rate", "get", "barrier")
	}
	for _, test := range tests {
		v, err := o.Measure(ctx, OverTCP, 2, test, 64, 3)
		require.NoError(t, err)
		require.Positive(t, v)
	}
	_, err = o.Measure(ctx, OverTCP, 1, "nothing", 1, 1)
	require.Error(t, err)
}

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
