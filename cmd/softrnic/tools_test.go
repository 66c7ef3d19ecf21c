package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/perftest"
)

// commandEnv is the variable that makes the test binary the command.
const commandEnv = "SOFTRNIC_TEST_COMMAND"

func init() {
	if os.Getenv(commandEnv) != "" {
		main()
	}
}

// TestToolRefusals checks that invalid options are reported with the reason, and status 2.
func TestToolRefusals(t *testing.T) {
	quiet(t)
	for line, text := range map[string]string{
		"pingpong xrc":                        "unknown command \"xrc\" of `softrnic pingpong`; did you mean `softrnic pingpong rc`?",
		"pingpong rc a b":                     "takes one host at most",
		"pingpong rc -m 1000":                 "-m 1000: the MTU is 256, 512, 1024, 2048 or 4096",
		"pingpong rc -m 0":                    "-m 0: the MTU is",
		"pingpong ud -m 1024":                 "unknown shorthand flag: 'm'",
		"pingpong rc -q 2":                    "unknown shorthand flag: 'q'",
		"pingpong rc -n 0":                    "-n: 0 messages",
		"pingpong rc -n x":                    `-n, --iters: "x": want a whole number`,
		"pingpong srq -q 256":                 "-q: 256 queue pairs cannot be",
		"pingpong rc -t":                      "--ts: not supported: completions have no timestamps",
		"pingpong rc -j":                      "--dm: not supported: the device has no memory of its own",
		"pingpong srq -o":                     "--odp: not supported: memory is not pinned",
		"pingpong rc --addr x":                "is not an address",
		"pingpong rc -d other":                "IB device other not found; the device is softrnic",
		"pingpong rc --addr 127.0.0.9:5000":   "want 4791: the handshake cannot carry a UDP port",
		"pingpong rc --impair slowly":         "--impair: ",
		"pingpong rc -p 70000":                "-p: TCP port 70000",
		"perf raw_ethernet_bw":                "unknown command \"raw_ethernet_bw\" of `softrnic perf`",
		"perf send_bw a b":                    "takes one host at most",
		"perf send_bw -c XRC":                 "-c XRC: want RC, UC or UD",
		"perf read_bw -c UC":                  "-c: unreliable connections have no reads",
		"perf send_bw -m 1500":                "-m 1500: the MTU is",
		"perf send_bw -n 3":                   "-n: 3 is not one of 5 to",
		"perf send_bw -D 0":                   "-D 0: give a number of seconds",
		"perf send_lat -b":                    "unknown shorthand flag: 'b'",
		"perf atomic_bw -s 8":                 "unknown shorthand flag: 's'",
		"perf atomic_bw -A ADD":               "-A: there are FETCH_AND_ADD and CMP_AND_SWAP",
		"perf send_bw -O":                     "--dualport: not supported: the device has one port",
		"perf send_bw --use_hugepages":        "--use_hugepages: not supported",
		"perf send_bw --rate_limit_type HW":   "the rate is limited by software (SW)",
		"perf send_bw --rate_units x":         "want M, g or p",
		"perf send_bw --payload_file_path no": "no such file",
		"perf send_bw --flow_label 1048576":   "want 20 bits",
		"perf send_bw --bind_source_ip here":  `"here" is not an address`,
		"perf send_bw --output latency":       "--output: of a bandwidth test is bandwidth or message_rate",
		"perf write_bw -R -c UC":              "-R: the RDMA CM connects no UC",
		"perf send_bw -T 3":                   "-T: is for what -R connects",
	} {
		t.Run(line, func(t *testing.T) {
			status, _, stderr := run(t, newApp(nil, nil), line)
			want := 2
			if runtime := []string{"not found; the device is", "want 4791", "no such file"}; slices.ContainsFunc(runtime, func(s string) bool { return strings.Contains(text, s) }) {
				want = 1 // an error of the machine, not of the options
			}
			require.Equal(t, want, status, stderr)
			require.Contains(t, stderr, text)
		})
	}
}

// TestToolHelp checks that the help explains how two processes on one machine are connected.
func TestToolHelp(t *testing.T) {
	quiet(t)
	lines := []string{"pingpong rc", "pingpong uc", "pingpong ud", "pingpong srq"}
	for _, test := range perftest.Tests {
		lines = append(lines, "perf "+test.String())
	}
	for _, line := range lines {
		status, stdout, _ := run(t, newApp(nil, nil), line+" --help")
		require.Zero(t, status)
		require.Contains(t, stdout, "softrnic "+line+" localhost")
		require.Contains(t, stdout, "a free address of 127.0.0.0/8")
	}
	for _, line := range []string{"pingpong", "perf"} {
		status, stdout, _ := run(t, newApp(nil, nil), line)
		require.Zero(t, status)
		require.Contains(t, stdout, "Available Commands:")
	}
	status, stdout, _ := run(t, newApp(nil, nil), "perf send_bw -V")
	require.Zero(t, status)
	require.Equal(t, "Version: 6.06\n", stdout)
}

// freePort returns a TCP port that was free at the time of the call.
func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// process is a run of the command in a process of its own.
type process struct {
	cmd       *exec.Cmd
	out, diag bytes.Buffer
}

func start(t *testing.T, ctx context.Context, line string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(ctx, os.Args[0], strings.Fields(line)...)}
	p.cmd.Env = append(os.Environ(), commandEnv+"=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.diag
	require.NoError(t, p.cmd.Start())
	return p
}

// between runs a server and a client as processes, and returns their outputs.
func between(t *testing.T, server, client string) (fromServer, fromClient string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := start(t, ctx, server)
	for {
		c := start(t, ctx, client)
		err := c.cmd.Wait()
		if err != nil && strings.Contains(c.diag.String(), "start the server first") && ctx.Err() == nil {
			continue // the server does not listen yet
		}
		require.NoError(t, err, "client: %s", c.diag.String())
		require.NoError(t, s.cmd.Wait(), "server: %s", s.diag.String())
		return s.out.String(), c.out.String()
	}
}

// TestToolProcesses runs every tool between two processes of this machine, as a user would.
func TestToolProcesses(t *testing.T) {
	quiet(t)
	for _, c := range []struct{ tool, flags, form string }{
		{"pingpong rc", "-n 20 -c", `163840 bytes in \d\.\d\d seconds = \d+\.\d\d Mbit/sec\n20 iters in `},
		{"pingpong uc", "-n 20 -c -s 100", "4000 bytes in "},
		{"pingpong ud", "-n 20 -c -e", "40960 bytes in "},
		{"pingpong srq", "-n 20 -c -q 3", "163840 bytes in "},
		{"perf send_bw", "-n 20 --data_validation", `\n 65536      20  `},
		{"perf send_lat", "-n 20 -c UD", `\n 2       20  `},
		{"perf write_bw", "-n 20 -b -q 2", `\n 65536      40  `},
		{"perf write_lat", "-n 20 -s 8", `\n 8       20  `}, // a whole word: shorter writes are plain copies, which -race reports
		{"perf read_bw", "-n 20 --report_gbits -s 1000", `\n 1000       20  `},
		{"perf read_lat", "-n 20", "RDMA_Read Latency Test"},
		{"perf atomic_bw", "-n 20 -A CMP_AND_SWAP", `\n 8          20  `},
		{"perf atomic_lat", "-n 20", "Atomic FETCH_AND_ADD Latency Test"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			line := fmt.Sprintf("%s -p %d %s", c.tool, freePort(t), c.flags)
			server, client := between(t, line, line+" localhost")
			require.Regexp(t, c.form, server)
			require.Regexp(t, c.form, client)
			require.Contains(t, server, "remote address: LID 0")
			require.Contains(t, client, "local address: ")
		})
	}
}

// TestToolJSON checks that the tools write valid JSON, to standard output and to a file.
func TestToolJSON(t *testing.T) {
	quiet(t)
	port := freePort(t)
	server, client := between(t, fmt.Sprintf("pingpong rc -n 10 -p %d --json", port), fmt.Sprintf("pingpong rc -n 10 -p %d --json localhost", port))
	var s, c pingpongJSON
	require.NoError(t, json.Unmarshal([]byte(server), &s))
	require.NoError(t, json.Unmarshal([]byte(client), &c))
	require.Equal(t, s.Local, c.Remote)
	require.Equal(t, "ibv_rc_pingpong", c.Program)
	require.EqualValues(t, 2*4096*10, c.Bytes)
	require.Positive(t, c.UsecPerIter)

	file := filepath.Join(t.TempDir(), "report.json")
	port = freePort(t)
	_, client = between(t, fmt.Sprintf("perf write_bw -n 10 -p %d", port),
		fmt.Sprintf("perf write_bw -n 10 -p %d --json --out_json --out_json_file=%s localhost", port, file))
	saved, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, client, string(saved))
	var report struct {
		Info struct {
			Test string `json:"test"`
		} `json:"test_info"`
		Results struct {
			Size    int     `json:"MsgSize"`
			Average float64 `json:"BW_average"`
		} `json:"results"`
	}
	require.NoError(t, json.Unmarshal(saved, &report))
	require.Equal(t, "RDMA_Write_BW_Test", report.Info.Test)
	require.Equal(t, 65536, report.Results.Size)
	require.Positive(t, report.Results.Average)
}

// TestToolRemarks checks the remarks about flags without effect, and the counters.
func TestToolRemarks(t *testing.T) {
	quiet(t)
	port := freePort(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := start(t, ctx, fmt.Sprintf("perf send_bw -n 10 -p %d -W rcvd_pkts", port))
	line := fmt.Sprintf("perf send_bw -n 10 -p %d -F --numa_node=0 -W hw_counters/sent_pkts localhost", port)
	var c *process
	for {
		c = start(t, ctx, line)
		if err := c.cmd.Wait(); err == nil || !strings.Contains(c.diag.String(), "start the server first") {
			require.NoError(t, err, c.diag.String())
			break
		}
	}
	require.NoError(t, s.cmd.Wait(), s.diag.String())
	require.Contains(t, c.diag.String(), "softrnic: --numa_node has no effect: use numactl\n")
	require.Contains(t, c.diag.String(), "softrnic: --CPU-freq has no effect: ")
	require.Regexp(t, `\n\thw_counters/sent_pkts=\d+\n\n`, c.out.String())
	require.Regexp(t, `\n\trcvd_pkts=\d+\n\n`, s.out.String())
}
