package runtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

// TestObserve checks that stat and top find a running program by its name, and that the capture of its packets is complete
// after its end.
func TestObserve(t *testing.T) {
	programtest.NeedPrograms(t, "ibv_rc_pingpong")
	b := needBuild(t)
	session, dir := t.TempDir(), t.TempDir()
	environ := []string{"XDG_RUNTIME_DIR=" + session}
	file, port := filepath.Join(dir, "packets.pcapng"), programtest.FreePort(t)
	pingpong := []string{"ibv_rc_pingpong", "-g", "0", "-p", port}
	server := start(t, environ, []string{"--capture", file, "--impair", "loss 0.1% seed 3"}, pingpong...)
	programtest.WaitListening(t, port)

	query := func(args ...string) []byte {
		c := exec.Command(b.softrnic, args...)
		c.Env = append(os.Environ(), environ...)
		out, err := c.Output()
		require.NoError(t, err)
		return out
	}
	var reports []struct {
		Process struct{ PID int }
		Faults  struct{ Spec string }
	}
	require.NoError(t, json.Unmarshal(query("stat", "--json", "--of", "ibv_rc_pingpong"), &reports))
	require.Len(t, reports, 1)
	require.Equal(t, server.cmd.Process.Pid, reports[0].Process.PID, "softrnic has become the program")
	require.Equal(t, "loss 0.1% seed 3", reports[0].Faults.Spec)
	require.Contains(t, string(query("top", "-n", "1", "-d", "1ms")), "ibv_rc_pingpong")

	runProgram(t, environ, nil, append(pingpong, "127.0.0.1")...)
	out, status := server.wait(t)
	require.Zero(t, status, out)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Greater(t, info.Size(), int64(1000*4096), "a thousand messages")
}

// TestWithoutRuntimeDir checks that a program has its device where no socket for softrnic stat can be made, as in a
// container whose root file system is read-only.
func TestWithoutRuntimeDir(t *testing.T) {
	programtest.NeedPrograms(t, "ibv_devices", "ucx_info")
	none := filepath.Join(t.TempDir(), "none")
	environ := []string{"XDG_RUNTIME_DIR=" + none, "TMPDIR=" + none}
	for _, debug := range []string{"SOFTRNIC_DEBUG=", "SOFTRNIC_DEBUG=auto", "SOFTRNIC_DEBUG=off"} {
		out := runProgram(t, append(environ, debug), nil, "ibv_devices")
		require.Contains(t, out, "softrnic0")
		require.Equal(t, debug == "SOFTRNIC_DEBUG=auto", strings.Contains(out, "debug endpoint"), "only if requested: %s", out)
	}
	require.Contains(t, runProgram(t, environ, nil, "ucx_info", "-d"), "softrnic0:1")
	require.Contains(t, runProgram(t, environ, []string{"--addr", "127.0.113.20"}, "ibv_devices"), "softrnic0", "the broker needs none")
}

// TestExplain checks that --explain names the reason of a failed completion.
func TestExplain(t *testing.T) {
	programtest.NeedPrograms(t, "ib_send_bw")
	port := programtest.FreePort(t)
	server := start(t, nil, nil, "ib_send_bw", "-p", port, "-n", "5000")
	programtest.WaitListening(t, port)
	client := start(t, nil, []string{"--explain", "--impair", "loss 100%"}, "ib_send_bw", "-p", port, "-n", "5000", "-u", "8", "127.0.0.1")
	out, status := client.wait(t)
	require.NotZero(t, status, out)
	require.Contains(t, out, "no acknowledgement from 127.")
	require.NoError(t, server.cmd.Process.Kill())
	_, _ = server.wait(t)
}

// TestCaptureOfSeveral checks that programs that run one after the other keep the captures of earlier ones.
func TestCaptureOfSeveral(t *testing.T) {
	programtest.NeedPrograms(t, "ibv_devices", "ibv_devinfo")
	needBuild(t)
	dir := t.TempDir()
	pair, file := filepath.Join(dir, "pair"), filepath.Join(dir, "packets.pcapng")
	out, err := exec.Command("gcc", "-o", pair, "../example/pair.c", "-libverbs").CombinedOutput()
	require.NoError(t, err, string(out))
	for range 2 { // a second run begins again
		runProgram(t, nil, []string{"--capture", file}, "sh", "-c", `ibv_devices && "$0" 3 && cp "$1" "$1.copy" && ibv_devinfo -l && "$0" 3`, pair, file)
		first, err := os.ReadFile(file + ".copy")
		require.NoError(t, err)
		require.Greater(t, len(first), 3*65536)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, len(first), len(text))
		others, err := filepath.Glob(file + ".*.0")
		require.NoError(t, err)
		require.NotEmpty(t, others)
		for _, other := range others {
			require.NoError(t, os.Remove(other))
		}
	}
}
