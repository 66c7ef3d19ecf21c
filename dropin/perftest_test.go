package dropin_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

// A perftestVariant is a way to run a test of perftest.
type perftestVariant struct {
	name    string
	option  string // that the help of the test must have
	args    []string
	environ []string
	all     bool // with all sizes
	few     bool // messages, of which none is repeated if the receiver's socket overruns
}

var perftestVariants = []perftestVariant{
	{name: "plain"},
	{name: "events", option: "--events", args: []string{"-e"}},
	{name: "8-qps", option: "--qp=", args: []string{"-q", "8"}},
	{name: "bidirectional", option: "--bidirectional", args: []string{"-b"}},
	{name: "srq", option: "--use-srq", args: []string{"--use-srq", "-r", "64"}},
	{name: "inline", option: "--inline_size", args: []string{"-I", "64", "-s", "64"}},
	{name: "all-sizes", option: "--all", args: []string{"-a"}, all: true},
	{name: "rdma-cm", option: "--rdma_cm", args: []string{"-R"}},
	{name: "uc", option: "/UC/", args: []string{"-c", "UC"}, few: true},
	{name: "ud", option: "/UD/", args: []string{"-c", "UD"}, few: true},
	{name: "ipv6", environ: []string{"SOFTRNIC_ADDR=::1"}},
	{name: "loss", environ: []string{"SOFTRNIC_IMPAIR=loss 1%"}},
}

// perftestSelection are the variants that run unless all do.
var perftestSelection = map[string][]string{
	"ib_send_bw": {"plain", "srq", "bidirectional", "loss", "ud"}, "ib_send_lat": {"plain", "events", "srq", "ud"},
	"ib_write_bw": {"plain", "8-qps", "all-sizes", "ipv6", "uc"}, "ib_write_lat": {"plain", "inline", "uc"},
	"ib_read_bw": {"plain", "loss"}, "ib_read_lat": {"plain", "ipv6"},
	"ib_atomic_bw": {"plain", "bidirectional"}, "ib_atomic_lat": {"plain", "events"},
}

// perftestRows returns the table of a test: the numbers of bytes and iterations of each line.
func perftestRows(stdout string) (rows [][2]int) {
	for line := range strings.Lines(stdout) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		size, err := strconv.Atoi(f[0])
		n, err2 := strconv.Atoi(f[1])
		if err == nil && err2 == nil {
			rows = append(rows, [2]int{size, n})
		}
	}
	return rows
}

// wantRows returns the table that a variant of a test prints.
func (v perftestVariant) wantRows(test string, iterations int) (rows [][2]int) {
	size := 2 // of latency tests
	switch {
	case strings.Contains(test, "atomic"):
		size = 8
	case strings.HasSuffix(test, "_bw") && slices.Contains(v.args, "UD"):
		size = 4096 // the MTU
	case strings.HasSuffix(test, "_bw"):
		size = 65536
	}
	if i := slices.Index(v.args, "-s"); i >= 0 {
		size, _ = strconv.Atoi(v.args[i+1])
	}
	if i := slices.Index(v.args, "-q"); i >= 0 {
		qps, _ := strconv.Atoi(v.args[i+1])
		iterations *= qps
	}
	if !v.all {
		return [][2]int{{size, iterations}}
	}
	for size := 2; size <= 8<<20; size *= 2 {
		rows = append(rows, [2]int{size, iterations})
	}
	return rows
}

// TestPerftest runs perftest's tests between two processes. Each must end with status 0 at both ends and print all
// sizes with all iterations.
func TestPerftest(t *testing.T) {
	for test, selection := range perftestSelection {
		programtest.NeedPrograms(t, test)
		help, _ := exec.Command(test, "--help").CombinedOutput() // status 1
		for _, v := range perftestVariants {
			if !runAll && !slices.Contains(selection, v.name) || !strings.Contains(string(help), v.option) {
				continue
			}
			t.Run(test+"/"+v.name, func(t *testing.T) { runPerftest(t, test, v) })
		}
	}
}

func runPerftest(t *testing.T, test string, v perftestVariant) {
	iterations := 1000
	switch {
	case v.all && !runAll:
		iterations = 20 // of up to 8 MiB
	case v.all:
		iterations = 100
	case v.few || !runAll:
		iterations = 200
	}
	port := programtest.FreePort(t)
	args := append([]string{test, "-d", "softrnic0", "-x", "0", "-F", "-p", port, "-n", strconv.Itoa(iterations)}, v.args...)
	_, server := command{args: args, environ: v.environ, limit: 2 * time.Minute}.start(t)
	if slices.Contains(v.args, "-R") {
		time.Sleep(500 * time.Millisecond) // no socket shows that it listens
	} else {
		programtest.WaitListening(t, port)
	}
	_, client := command{args: append(args, "127.0.0.1"), environ: v.environ, limit: 2 * time.Minute}.start(t)
	atClient, atServer := client(), server()
	require.Zero(t, atClient.code, atClient)
	require.Zero(t, atServer.code, atServer)
	want := v.wantRows(test, iterations)
	require.Equal(t, want, perftestRows(atClient.stdout), atClient)
	require.Subset(t, want, perftestRows(atServer.stdout), atServer) // some print the last row only, or none
}

// waitBusy waits until a process has computed for a fifth of a second: a bandwidth test is in its middle then.
func waitBusy(t *testing.T, pid int) {
	t.Helper()
	const ticks = 20 // of a hundredth of a second
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		user, _ := strconv.Atoi(f[11])
		system, _ := strconv.Atoi(f[12])
		return user+system >= ticks
	}, time.Minute, 10*time.Millisecond)
}

// TestKilledPeer kills a side of ib_write_bw in the middle: the other ends with an error, and the next program
// removes the files of the killed one.
func TestKilledPeer(t *testing.T) {
	programtest.NeedPrograms(t, "ib_write_bw", "ibv_devinfo")
	for _, victim := range []string{"server", "client"} {
		t.Run(victim, func(t *testing.T) {
			port, dir := programtest.FreePort(t), t.TempDir()
			environ := []string{"TMPDIR=" + dir}
			args := []string{"ib_write_bw", "-d", "softrnic0", "-x", "0", "-F", "-p", port, "-D", "3600", "-s", "4096"}
			server, serverEnd := command{args: args, environ: environ}.start(t)
			programtest.WaitListening(t, port)
			client, clientEnd := command{args: append(args, "127.0.0.1"), environ: environ}.start(t)
			waitBusy(t, client.Process.Pid)
			killed, ends := server, []func() result{serverEnd, clientEnd}
			if victim == "client" {
				killed, ends = client, []func() result{clientEnd, serverEnd}
			}
			require.NoError(t, killed.Process.Kill())
			require.Equal(t, -1, ends[0]().code)
			survivor := ends[1]()
			require.Positive(t, survivor.code, survivor) // negative if it had to be ended after limit
			require.NotContains(t, survivor.stderr, "goroutine", survivor)
			if victim == "server" {
				require.Contains(t, survivor.stderr+survivor.stdout, "status", "an error completion: %v", survivor)
			}

			r := command{args: []string{"ibv_devinfo", "-v"}, environ: environ}.runProgram(t)
			require.Zero(t, r.code, r)
			left, err := exec.Command("find", dir, "-type", "f", "-o", "-type", "s").Output()
			require.NoError(t, err)
			for _, pid := range []int{server.Process.Pid, client.Process.Pid} {
				require.NotContains(t, string(left), strconv.Itoa(pid))
			}
		})
	}
}
