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
		"rping":                               "give either -s, to be the server, or -c, to be the client",
		"rping -s -c -a 127.0.0.1":            "give either -s",
		"rping -c":                            "-a: a client needs the server's address",
		"rping -s -q":                         "--self-create-qp: not supported: queue pairs are always created by the program",
		"rping -s -S 22":                      "-S: invalid size 22 (valid range is 23 to 65535)",
		"rping -s -t 1":                       "unknown shorthand flag: 't'",
		"rping -s --json":                     "--json: the command has no results",
		"rping -s -a 127.0.0.1 there":         `takes no argument, got "there"`,
		"rping -s --impair nonsense":          "--impair: ",
		"rping -s -a 192.0.2.77":              "no interface of this machine has that address",
		"ucmatose -m":                         "--migrate: not supported: event channels do not exist",
		"ucmatose -f gid -s ::1":              "on Ethernet give an IP address",
		"ucmatose -P sdp":                     "want tcp or ib",
		"ucmatose -a 32":                      "want 0 to 31, for 4.096 us * 2^n",
		"ucmatose -c 0":                       "-c: 0 connections: want 1",
		"ucmatose -t 256":                     "-t, --tos: \"256\": want a whole number from 0 to 255",
		"udaddy -p 2":                         "port space IPoIB: not supported",
		"udaddy -p 0x106":                     "the port space is 0x111 (UDP)",
		"udaddy -P ipoib":                     "port space IPoIB: not supported",
		"udaddy -P tcp":                       "the port space is udp",
		"udaddy -b 127.0.0.1 -S -1":           "-S: messages of -1 bytes cannot be",
		"udaddy -s 127.0.0.1 -S 10000":        "-S: message_size 10000 is larger than active mtu 4096",

		"sdp nosuch":                             "unknown command \"nosuch\" of `softrnic sdp`; want one of cat, proxy",
		"sdp proxy":                              "--listen: missing; give the address to listen at",
		"sdp proxy --listen tcp::1":              "--to: missing; give the address to connect to",
		"sdp proxy --listen nowhere":             "want sdp:[HOST]:PORT or tcp:[HOST]:PORT, for example sdp:192.0.2.1:7471",
		"sdp proxy --listen udp:1":               "unknown network udp: want sdp:[HOST]:PORT or tcp:[HOST]:PORT",
		"sdp proxy --listen tcp::1 --to sdp:h":   "want sdp:[HOST]:PORT or tcp:[HOST]:PORT",
		"sdp proxy --listen tcp::1 --to sdp:h:0": "sdp:h:0: port is missing",
		"sdp proxy --listen tcp::1 --to tcp::80": "tcp::80: host is missing",
		"sdp proxy --flow-control fast":          "nic, rdma or credit",
		"sdp proxy --buffers -1":                 "--buffers -1: want 1 to 16384 of them",
		"sdp proxy --buffers 0":                  "--buffers 0: want 1 to 16384",
		"sdp proxy --buffers 16385":              "--buffers 16385: want 1 to 16384",
		"sdp cat -l 1 --buffer-size 0":           "--buffer-size 0: want 64 to 16777216 bytes",
		"sdp cat -l 1 --buffer-size 63":          "--buffer-size 63: want 64 to 16777216 bytes",
		"sdp cat -l 1 --window 0":                "--window 0: want 1 to 1048576 bytes, half of all buffers",
		"sdp cat -l 1 --window 1MiB --buffers 1": "--window 1048576: want 1 to 32768 bytes, half of all buffers",
		"sdp cat -l 1 --zero-copy -5":            "--zero-copy -5: want a number of bytes, at least 1, or -1 for never",
		"sdp cat -l 1 --zero-copy 0":             "--zero-copy 0: want a number of bytes",
		"sdp proxy --keepalive 0s":               "--keepalive 0s: want a time such as 30s, or -1s for never",
		"sdp proxy --keepalive -5s":              "--keepalive -5s: want a time",
		"sdp proxy --grace 0s":                   "--grace 0s: want a time such as 5s",
		"sdp proxy --dial-timeout -1s":           "softrnic: --dial-timeout -1s: want a time such as 5s",
		"sdp proxy --buffer-size 64KB":           `"64KB" is not a number like 64, 4K or 1MiB`,
		"sdp proxy here":                         "takes no argument",
		"sdp cat":                                "the address of the peer is missing: want `softrnic sdp cat HOST PORT",
		"sdp cat 7471":                           `"7471": want a host and a port`,
		"sdp cat 127.0.0.1 0":                    `"127.0.0.1 0": port is missing`,
		"sdp cat :1":                             `":1": host is missing`,
		"sdp cat -l a b c":                       `unexpected argument "c"`,
		"sdp cat tcp:127.0.0.1:1":                "tcp:127.0.0.1:1: want an address of SDP",
		"sdp cat [::1 7471":                      `"[::1:7471": want sdp:[HOST]:PORT`,
		"sdp cat [::1] ssh":                      `"[::1]:ssh": port "ssh": want 0 to 65535`,
		"sdp cat 127.0.0.1 ssh":                  `port "ssh": want 0 to 65535`,
		"sdp cat 127.0.0.1 1 --json":             "--json: not supported",
		"sdp cat -l 1 --impair slowly":           "--impair: ",

		"sdp proxy --buffers 65 --buffer-size 16MiB": "--buffers 65 of --buffer-size 16777216: want at most 1 GiB",
	} {
		t.Run(line, func(t *testing.T) {
			status, stdout, stderr := run(t, newApp(nil, nil), line)
			want := 2
			if runtime := []string{"not found; the device is", "want 4791", "no such file", "no interface"}; slices.ContainsFunc(runtime, func(s string) bool { return strings.Contains(text, s) }) {
				want = 1 // an error of the machine, not of the options
			}
			require.Equal(t, want, status, stderr)
			require.Contains(t, stderr, text)
			if strings.HasPrefix(line, "sdp") {
				require.Empty(t, stdout)
			}
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

// command returns a command line that runs in a process of its own.
func command(ctx context.Context, line string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0], strings.Fields(line)...)
	c.Env = append(os.Environ(), commandEnv+"=1")
	return c
}

// process is a run of the command in a process of its own.
type process struct {
	cmd       *exec.Cmd
	out, diag bytes.Buffer
}

func start(t *testing.T, ctx context.Context, line string) *process {
	t.Helper()
	p := &process{cmd: command(ctx, line)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.diag
	require.NoError(t, p.cmd.Start())
	return p
}

// between runs a server and a client as processes, and returns their outputs and the diagnostics of
// the client.
func between(t *testing.T, server, client string) (fromServer, fromClient, diag string) {
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
		return s.out.String(), c.out.String(), c.diag.String()
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
		{"perf write_bw", "-n 20 --wire iwarp", `\n 65536      20  `},
		{"perf atomic_bw", "-n 20 -A CMP_AND_SWAP", `\n 8          20  `},
		{"perf atomic_lat", "-n 20", "Atomic FETCH_AND_ADD Latency Test"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			line := fmt.Sprintf("%s -p %d %s", c.tool, freePort(t), c.flags)
			server, client, _ := between(t, line, line+" localhost")
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
	server, client, _ := between(t, fmt.Sprintf("pingpong rc -n 10 -p %d --json", port), fmt.Sprintf("pingpong rc -n 10 -p %d --json localhost", port))
	var s, c pingpongJSON
	require.NoError(t, json.Unmarshal([]byte(server), &s))
	require.NoError(t, json.Unmarshal([]byte(client), &c))
	require.Equal(t, s.Local, c.Remote)
	require.Equal(t, "ibv_rc_pingpong", c.Program)
	require.EqualValues(t, 2*4096*10, c.Bytes)
	require.Positive(t, c.UsecPerIter)

	file := filepath.Join(t.TempDir(), "report.json")
	port = freePort(t)
	_, client, _ = between(t, fmt.Sprintf("perf write_bw -n 10 -p %d", port),
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
	server, client, diag := between(t, fmt.Sprintf("perf send_bw -n 10 -p %d -W rcvd_pkts", port),
		fmt.Sprintf("perf send_bw -n 10 -p %d -F --numa_node=0 -W hw_counters/sent_pkts localhost", port))
	require.Contains(t, diag, "softrnic: --numa_node has no effect: use numactl\n")
	require.Contains(t, diag, "softrnic: --CPU-freq has no effect: ")
	require.Regexp(t, `\n\thw_counters/sent_pkts=\d+\n\n`, client)
	require.Regexp(t, `\n\trcvd_pkts=\d+\n\n`, server)
}
