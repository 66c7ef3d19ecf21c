package runtest

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDevinfo checks the description of the device.
func TestDevinfo(t *testing.T) {
	needPrograms(t, "ibv_devinfo")
	out := runProgram(t, nil, nil, "ibv_devinfo", "-v")
	for _, want := range []string{"hca_id:\tsoftrnic0", "PORT_ACTIVE (4)", "RoCE v2", "link_layer:\t\tEthernet"} {
		require.Contains(t, out, want)
	}
}

// TestPingpongs runs the programs of libibverbs with checked data, by polling and by events.
func TestPingpongs(t *testing.T) {
	for _, line := range []string{"ibv_rc_pingpong", "ibv_rc_pingpong -e", "ibv_rc_pingpong -N", "ibv_uc_pingpong", "ibv_uc_pingpong -e",
		"ibv_ud_pingpong", "ibv_ud_pingpong -e", "ibv_srq_pingpong", "ibv_srq_pingpong -e"} {
		t.Run(strings.ReplaceAll(line, " ", ""), func(t *testing.T) {
			args := strings.Fields(line)
			needPrograms(t, args[0])
			port := freePort(t)
			out := runPair(t, nil, nil, port, append(args, "-g", "0", "-c", "-n", "200", "-p", port)...)
			require.Contains(t, out, "200 iters in")
			require.NotContains(t, out, "invalid data")
		})
	}
}

// TestPerftest runs perftest's programs in each mode that the adapter has, at a loss of packets, too.
func TestPerftest(t *testing.T) {
	for _, line := range []string{"ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat", "ib_send_bw", "ib_read_bw", "ib_atomic_bw",
		"ib_write_bw -a", "ib_write_bw -q 8", "ib_send_bw -b", "ib_send_bw -e", "ib_send_bw --use-srq -r 64", "ib_send_bw -I 64 -s 64",
		"ib_send_bw -c UD", "ib_write_bw -c UC", "ib_write_lat -c UC", "ib_send_lat -c UD"} {
		t.Run(strings.ReplaceAll(line, " ", ""), func(t *testing.T) {
			args := strings.Fields(line)
			needPrograms(t, args[0])
			port := freePort(t)
			out := runPair(t, nil, nil, port, append(args, "-x", "0", "-n", "200", "-p", port)...)
			require.Regexp(t, `(?m)^ *\d+ +(200|1600) `, out, "a row of results")
		})
	}
	t.Run("loss", func(t *testing.T) {
		needPrograms(t, "ib_write_bw")
		port := freePort(t)
		out := runPair(t, nil, []string{"--impair", "loss 1% seed 5"}, port, "ib_write_bw", "-n", "500", "-u", "10", "-p", port)
		require.Regexp(t, `(?m)^ *65536 +500 `, out)
	})
}

// TestUCX runs UCX over the verbs transports, and requires that it finds the device and uses it.
func TestUCX(t *testing.T) {
	needPrograms(t, "ucx_info", "ucx_perftest")
	out := runProgram(t, nil, nil, "ucx_info", "-d")
	for _, transport := range []string{"rc_verbs", "ud_verbs"} {
		require.Regexp(t, `Transport: `+transport+`\n#\s+Device: softrnic0:1`, out)
	}
	for transports, tests := range map[string]string{
		"rc_verbs,ud_verbs,self": "tag_lat tag_bw ucp_put_bw ucp_get ucp_fadd ucp_am_lat stream_bw",
		"ud_verbs,self":          "tag_lat ucp_put_bw ucp_get",
	} {
		environ := []string{"UCX_TLS=" + transports}
		for test := range strings.FieldsSeq(tests) {
			t.Run(transports+"/"+test, func(t *testing.T) {
				port := freePort(t)
				server := start(t, environ, nil, "ucx_perftest", "-p", port)
				awaitListener(t, server, port)
				out := runProgram(t, environ, nil, "ucx_perftest", "-p", port, "-t", test, "-n", "500", "-w", "50", "127.0.0.1")
				require.Regexp(t, regexp.MustCompile(`Final: +500 `), out)
				out, status := server.wait(t)
				require.Zero(t, status, out)
			})
		}
	}
}

// TestOpenMPI runs collectives of Open MPI over UCX and requires the right sums.
func TestOpenMPI(t *testing.T) {
	needPrograms(t, "mpirun.openmpi", "mpicc.openmpi")
	needBuild(t)
	program := filepath.Join(t.TempDir(), "sums")
	out, err := exec.Command("mpicc.openmpi", "-Wall", "-Wextra", "-Werror", "-o", program, "testdata/sums.c").CombinedOutput()
	require.NoError(t, err, string(out))
	environ := []string{"UCX_TLS=rc_verbs,ud_verbs,self", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
	text := runProgram(t, environ, nil, "mpirun.openmpi", "--oversubscribe", "-np", "3", "--mca", "pml", "ucx", program)
	require.Contains(t, text, "3 ranks, all sums right\n")
}
