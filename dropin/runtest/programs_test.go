package runtest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

// TestDevinfo checks the description of the device.
func TestDevinfo(t *testing.T) {
	programtest.NeedPrograms(t, "ibv_devinfo")
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
			programtest.NeedPrograms(t, args[0])
			port := programtest.FreePort(t)
			out := runPair(t, nil, nil, port, append(args, "-g", "0", "-c", "-n", "200", "-p", port)...)
			require.Contains(t, out, "200 iters in")
			require.NotContains(t, out, "invalid data")
		})
	}
}

// TestImpair runs a program of perftest at a loss of packets. The module's tests run all of perftest's.
func TestImpair(t *testing.T) {
	programtest.NeedPrograms(t, "ib_write_bw")
	port := programtest.FreePort(t)
	out := runPair(t, nil, []string{"--impair", "loss 1% seed 5"}, port, "ib_write_bw", "-n", "500", "-u", "10", "-p", port)
	require.Regexp(t, `(?m)^ *65536 +500 `, out)
}

// TestUCX runs UCX over the verbs transports, and requires that it finds the device and uses it.
func TestUCX(t *testing.T) {
	programtest.NeedPrograms(t, "ucx_info", "ucx_perftest")
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
				port := programtest.FreePort(t)
				server := start(t, environ, nil, "ucx_perftest", "-p", port)
				programtest.WaitListening(t, port)
				out := runProgram(t, environ, nil, "ucx_perftest", "-p", port, "-t", test, "-n", "500", "-w", "50", "127.0.0.1")
				require.Regexp(t, regexp.MustCompile(`Final: +500 `), out)
				out, status := server.wait(t)
				require.Zero(t, status, out)
			})
		}
	}
}
