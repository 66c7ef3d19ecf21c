//go:build unix

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

// commandEnv makes the test binary the command, as which it starts itself.
const commandEnv = "SOFTRNIC_TEST_COMMAND"

func init() {
	if os.Getenv(commandEnv) != "" {
		main()
	}
}

func runMPI(t *testing.T, line string) (status int, stdout, stderr string) {
	t.Helper()
	t.Setenv(commandEnv, "1")
	var out, diag bytes.Buffer
	a := &app{registry: &bench.Registry{}, stdout: &out, stderr: &diag, tourTime: time.Second}
	status = a.runCommandLine(t.Context(), strings.Fields(line))
	return status, out.String(), diag.String()
}

func TestMPIBenchmarks(t *testing.T) {
	for line, want := range map[string]string{
		"osu latency -m 4:16 -i 3 -x 1 -c":                  "# Size       Avg Latency(us)        Validation\n4 ",
		"osu osu_mbw_mr -n 4 -m 8 -i 2 -W 4 -p 1":           "# [ pairs: 1 ] [ window size: 4 ]",
		"osu latency_mt -t 2:2 -i 4 -m 1 -c":                "# Number of Sender threads: 2",
		"osu allreduce -n 3 -m 64 -i 2 -T mpi_float -f -z":  "# Datatype: MPI_FLOAT.",
		"osu put_bibw -m 8:16 -i 3 -W 4 -s fence -w create": "# Synchronization: MPI_Win_fence",
		"osu get_bw -m 8:16 -i 3 -W 4 -w dynamic -c":        "# Window creation: MPI_Win_create_dynamic",
		"osu osu_fop_latency -i 3 -T mpi_long -c":           "# Datatype: MPI_LONG.",
		"imb PingPong sendrecv -n 3 -msglog 2:3 -iter 5":    "# Benchmarking Sendrecv \n# #processes = 3 ",
		"nas is -n 2": "Verification    =               SUCCESSFUL",
	} {
		status, stdout, stderr := runMPI(t, line)
		require.Equal(t, 0, status, "%s: %s", line, stderr)
		require.Contains(t, stdout, want, line)
	}
}

// TestMPIAlone: a job of one rank needs no other process.
func TestMPIAlone(t *testing.T) {
	status, stdout, stderr := runMPI(t, "imb Barrier -n 1 -iter 3")
	require.Equal(t, 0, status, stderr)
	require.Contains(t, stdout, "# Benchmarking Barrier \n# #processes = 1 ")
}

func TestMPIUsage(t *testing.T) {
	for line, want := range map[string]string{
		"osu nothing":                  "unknown command \"nothing\" of `bench osu`; want one of acc_latency, allgather, ",
		"osu latency -n 3":             "osu_latency: 3 ranks, want 2",
		"osu latency -n 0":             "-n 0: want at least 1 rank",
		"osu latency -m x":             `-m "x": want [MIN:]MAX`,
		"osu latency -m 8:4":           "message sizes 8 to 4 bytes",
		"osu latency -T mpi_none":      `-T: osu: invalid options: type "mpi_none"`,
		"osu latency -i 0":             "0 and 0 iterations",
		"osu latency -W 3":             "unknown shorthand flag: 'W'",
		"osu bw -b double":             `-b "double": want single or multiple`,
		"osu mbw_mr -R 2":              "-R 2: want 0 or 1",
		"osu latency_mt -t a:1":        `-t "a:1": want [SENDERS:]RECEIVERS`,
		"osu bcast -k 3":               `-k "3": want fixed:RANK or rotate`,
		"osu bcast -k fixed:4":         "root 4 on 4 ranks",
		"osu bcast -z=200":             "percentile 200",
		"osu put_bw -n 3":              "osu_put_bw: 3 ranks, want 2",
		"osu put_bw -s sometimes":      `synchronization "sometimes": want lock, flush`,
		"osu put_bibw -s lock":         "osu_put_bibw: synchronization lock: want pscw or fence",
		"osu get_bw -w wall":           `"wall": want create, allocate or dynamic`,
		"osu cas_latency -T mpi_float": "osu_cas_latency: type mpi_float: want an integer type",
		"osu put_latency -f":           "unknown shorthand flag: 'f'",
		"osu bcast more":               "bench osu bcast: unexpected argument \"more\"",
		"imb Nothing":                  `unknown benchmark "Nothing"; known benchmarks: PingPong, `,
		"imb -npmin 0":                 "minimum number of ranks 0: want at least 1",
		"imb -msglog a":                `-msglog "a": want [MIN:]MAX`,
		"imb -iter 1,b":                `-iter "1,b": want REPETITIONS[,MB]`,
		"imb -iter_policy x":           `-iter_policy "x": want dynamic or off`,
		"imb -sync maybe":              `-sync "maybe": want 1 or 0`,
		"imb -root_shift 3":            "-root_shift 3: want 0 or 1",
		"imb -n 1 Biband":              "Biband: 1 ranks, want at least 2",
		"imb -exclude PingPing,no":     `unknown benchmark "no"`,
		"nas is -n 3":                  "nas: invalid number of ranks: 3, want a power of two",
		"nas is --class D":             `--class: class "D": nas: unknown class, want S, W, A, B or C`,
		"nas mg":                       "unknown command \"mg\" of `bench nas`; want one of cg, ep, is",
	} {
		status, stdout, stderr := runMPI(t, line)
		require.Equal(t, statusUsage, status, "%s\n%s", line, stderr)
		require.Contains(t, stderr, want, line)
		require.Empty(t, stdout, line)
	}
}

// TestRankFails: a rank that fails fails the command.
func TestRankFails(t *testing.T) {
	t.Setenv("SOFTRNIC_MPI_EAGER", "1")
	status, _, stderr := runMPI(t, "osu barrier -n 2")
	require.Equal(t, statusFailed, status)
	require.Contains(t, stderr, "SOFTRNIC_MPI_EAGER=1: ")
}
