package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/debugclient"
	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/rnic"
)

// openServedDevices opens two devices that have exchanged data and are served where the tools
// search.
func openServedDevices(t *testing.T) (a, b *rnic.Device) {
	t.Helper()
	quiet(t)
	for i, d := range []**rnic.Device{&a, &b} {
		dev, err := rnic.Open(rnic.Options{Name: fmt.Sprintf("nic%d", i), Debug: rnic.DebugAuto})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, dev.Close()) })
		*d = dev
	}
	require.NoError(t, exchangeData(t.Context(), a, b))
	return a, b
}

// stat runs a command line that must succeed.
func stat(t *testing.T, line string) string {
	t.Helper()
	status, stdout, stderr := run(t, newApp(nil, nil), line)
	require.Zero(t, status, stderr)
	require.Empty(t, stderr)
	return stdout
}

func TestStatText(t *testing.T) {
	a, b := openServedDevices(t)
	text := stat(t, "stat")
	q := a.Inspect().QPs[0]
	for _, want := range []string{
		fmt.Sprintf("nic0  process %d (", os.Getpid()), "nic1  process ", a.Addr().String() + "  PORT_ACTIVE  MTU 4096",
		"sent_bytes ", " 2097152 ", "rdma_sends", "Bytes of payload sent.", "link sent_packets", "objects: pd 1, cq 1, qp 1,",
		debug.FormatQPN(q.Num), b.Addr().String() + "/" + debug.FormatQPN(q.DestQPN),
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "link_downed", "it is 0")
	require.Contains(t, stat(t, "stat --all"), "link_downed")

	remove := a.AddLayer("cm", func(yield func(string, uint64) bool) { _ = yield("sent_req", 3) && yield("half_open", 0) }, "half_open")
	defer remove()
	require.Regexp(t, `\n  cm sent_req +3 `, stat(t, "stat"))
	require.NotContains(t, stat(t, "stat"), "half_open")
	require.Contains(t, stat(t, "stat --all"), "cm half_open")

	only := stat(t, "stat --of nic1")
	require.NotContains(t, only, "nic0")
	require.Equal(t, 2, strings.Count(stat(t, fmt.Sprintf("stat --of %d", os.Getpid())), fmt.Sprintf("process %d (", os.Getpid())))

	one := stat(t, fmt.Sprintf("stat --qp %d", q.Num))
	require.Contains(t, one, "rdma_sends")
	require.NotContains(t, one, "nic1")
	require.NotContains(t, one, "objects", "the queue pair's counters, not the device's")
}

func TestStatJSON(t *testing.T) {
	a, b := openServedDevices(t)
	var list []debugclient.Report
	require.NoError(t, json.Unmarshal([]byte(stat(t, "stat -j")), &list))
	require.Len(t, list, 2)
	for i, dev := range []*rnic.Device{a, b} {
		require.Equal(t, dev.Inspect().Device, list[i].Device)
		require.Equal(t, dev.Inspect().QPs[0].Num, list[i].QPs[0].Num)
		require.Equal(t, os.Getpid(), list[i].Process.PID)
	}
	require.GreaterOrEqual(t, list[0].Counters.SentBytes, uint64(2<<20)) // more where packets are sent twice

	num := list[1].QPs[0].Num
	require.NoError(t, json.Unmarshal([]byte(stat(t, fmt.Sprintf("stat --json --qp 0x%x", num))), &list))
	require.Len(t, list, 1)
	require.Equal(t, num, list[0].QPs[0].Num)
}

func TestStatWithoutProcesses(t *testing.T) {
	quiet(t)
	status, stdout, stderr := run(t, newApp(nil, nil), "stat -j")
	require.Zero(t, status)
	require.JSONEq(t, "[]", stdout)
	require.Contains(t, stderr, "no process of yours shows a device in "+os.Getenv("XDG_RUNTIME_DIR"))
	require.Contains(t, stderr, "; start programs with SOFTRNIC_DEBUG=auto in their environment")
}

// TestStatSilent checks that the other processes are shown if one does not reply.
func TestStatSilent(t *testing.T) {
	openServedDevices(t)
	path := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "softrnic", fmt.Sprintf("%d-9.sock", os.Getpid()))
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	status, stdout, stderr := run(t, newApp(nil, nil), "stat")
	require.Zero(t, status)
	require.Contains(t, stdout, "nic0")
	require.Contains(t, stdout, "nic1")
	require.Contains(t, stderr, fmt.Sprintf("process %d: no reply: debug endpoint unix:%s", os.Getpid(), path))
}

// TestStatPrometheus parses the output for node_exporter's text files.
func TestStatPrometheus(t *testing.T) {
	a, b := openServedDevices(t)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(stat(t, "stat --prometheus")))
	require.NoError(t, err)
	sent := map[string]float64{}
	for _, m := range families["softrnic_sent_bytes_total"].Metric {
		labels := map[string]string{}
		for _, l := range m.Label {
			labels[l.GetName()] = l.GetValue()
		}
		require.Equal(t, fmt.Sprint(os.Getpid()), labels["pid"])
		require.NotEmpty(t, labels["endpoint"])
		sent[labels["device"]] += m.GetCounter().GetValue()
	}
	require.Equal(t, map[string]float64{"nic0": float64(a.Inspect().Counters.SentBytes), "nic1": float64(b.Inspect().Counters.SentBytes)}, sent)
}

// untilWriter calls end once when a text has been written a number of times. Several
// goroutines may write.
type untilWriter struct {
	mu    sync.Mutex
	b     bytes.Buffer // not embedded: its ReadFrom would go past Write
	text  string
	times int
	end   func()
}

func (w *untilWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.b.Write(p)
	if w.end != nil && strings.Count(w.b.String(), w.text) >= w.times {
		w.end()
		w.end = nil
	}
	return n, err
}

func TestStatWatch(t *testing.T) {
	openServedDevices(t)
	watch := func(text string, args ...string) string {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &untilWriter{text: text, times: 3, end: cancel}
		require.Zero(t, newApp(w, w).runCommand(ctx, append([]string{"stat", "--of", "nic0", "--watch", "1ms"}, args...)))
		return w.b.String()
	}
	text := watch("objects:")
	require.Equal(t, 3, strings.Count(text, "nic0  process"))
	require.Contains(t, text, "0/s", "rates from the second look on")
	require.NotContains(t, text, "\x1b", "no cursor movements outside of a terminal")

	lines := strings.Split(strings.TrimSpace(watch("\n", "--json")), "\n")
	for _, line := range lines {
		var list []debugclient.Report
		require.NoError(t, json.Unmarshal([]byte(line), &list))
		require.Len(t, list, 1)
	}
}

func TestHistory(t *testing.T) {
	a, _ := openServedDevices(t)
	q := a.Inspect().QPs[0]
	text := stat(t, "stat history")
	require.Equal(t, 2, strings.Count(text, "process"))
	text = stat(t, "stat history --qp "+debug.FormatQPN(q.Num))
	require.Contains(t, text, fmt.Sprintf("nic0  process %d  RC QP %s  RTS\n", os.Getpid(), debug.FormatQPN(q.Num)))
	require.Regexp(t, ` ms ago  -> RC_SEND_LAST psn \d+`, text)
	column := -1
	for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		at := strings.Index(line, " ms ago  ")
		if at < 0 {
			require.Contains(t, line, "state RESET", "the recorder begins without knowing the time")
			continue
		}
		require.Contains(t, []int{-1, at}, column, "the times stand below each other: %s", line)
		column = at
	}

	var list []qpHistory
	require.NoError(t, json.Unmarshal([]byte(stat(t, "stat history -j --of nic0")), &list))
	require.Len(t, list, 1)
	require.Equal(t, "nic0", list[0].Device)
	require.NotEmpty(t, list[0].History)
}

func TestCapture(t *testing.T) {
	openServedDevices(t)
	file := filepath.Join(t.TempDir(), "out.pcapng")
	status, stdout, stderr := run(t, newApp(nil, nil), "capture --of nic0 --for 1ms -w "+file)
	require.Zero(t, status, stderr)
	require.Contains(t, stderr, "capturing nic0 of process")
	require.NotContains(t, stderr, "interrupt")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%s: %d bytes\n", file, len(data)), stdout)
	require.Equal(t, []byte{0x0a, 0x0d, 0x0d, 0x0a}, data[:4], "a section header block of pcapng")

	status, _, stderr = run(t, newApp(nil, nil), "capture --of nic0 -w /nonexistent/x")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "/nonexistent/x")
}

// captureExchange captures nic0 while a and b exchange data, until it is interrupted.
func captureExchange(t *testing.T, a, b *rnic.Device, flags string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	var out bytes.Buffer
	diag := &untilWriter{text: "interrupt to end\n", times: 1, end: func() {
		require.NoError(t, exchangeData(t.Context(), a, b))
		interrupt()
	}}
	status = newApp(&out, diag).runCommand(ctx, append([]string{"capture", "--of", "nic0"}, strings.Fields(flags)...))
	return status, out.String(), diag.b.String()
}

// TestCaptureDiskFull checks that a full disk causes status 1 and the system's reason.
func TestCaptureDiskFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	a, b := openServedDevices(t)
	status, stdout, stderr := captureExchange(t, a, b, "-w /dev/full")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "no space left on device")
	require.Empty(t, stdout)
}

// TestCaptureToStdout streams a capture through a pipe.
func TestCaptureToStdout(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no named pipes")
	}
	a, b := openServedDevices(t)
	status, stdout, stderr := captureExchange(t, a, b, "-w -")
	require.Zero(t, status, stderr)
	require.Greater(t, len(stdout), 2*selfTestBytes, "the whole exchange, and nothing else")
	require.Equal(t, "\n\r\r\n", stdout[:4], "a section header block of pcapng")

	status, _, stderr = run(t, newApp(nil, nil), fmt.Sprintf("capture --of %d -w -", os.Getpid()))
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "2 devices cannot share stdout")
}

// TestCaptureOfClosedDevice checks that a capture succeeds when the device is closed, with the
// packets until then.
func TestCaptureOfClosedDevice(t *testing.T) {
	a, _ := openServedDevices(t)
	file := filepath.Join(t.TempDir(), "out.pcapng")
	diag := &untilWriter{text: "interrupt to end\n", times: 1, end: func() { go a.Close() }}
	var stdout bytes.Buffer
	require.Zero(t, newApp(&stdout, diag).runCommand(t.Context(), []string{"capture", "--of", "nic0", "-w", file}))
	require.Contains(t, diag.b.String(), "nic0 of process")
	require.Contains(t, stdout.String(), file+": ")
}

// TestCaptureProcess captures a process with two devices, to one file each.
func TestCaptureProcess(t *testing.T) {
	openServedDevices(t)
	dir := t.TempDir()
	line := fmt.Sprintf("capture --of %d --for 1ms -w %s", os.Getpid(), filepath.Join(dir, "out.pcapng.gz"))
	status, stdout, stderr := run(t, newApp(nil, nil), line)
	require.Zero(t, status, stderr)
	for _, name := range []string{"nic0", "nic1"} {
		file := filepath.Join(dir, "out."+name+".pcapng.gz")
		require.FileExists(t, file)
		require.Contains(t, stderr, fmt.Sprintf("capturing %s of process %d to %s\n", name, os.Getpid(), file))
		require.Contains(t, stdout, file+": ")
	}
	var list []struct {
		File  string
		Bytes int
	}
	require.NoError(t, json.Unmarshal([]byte(statWithProgress(t, line+" --json")), &list))
	require.Len(t, list, 2)

	one := filepath.Join(dir, "one.pcapng")
	statWithProgress(t, fmt.Sprintf("capture --of %d/nic1 --for 1ms -w %s", os.Getpid(), one))
	require.FileExists(t, one)

	// A file that cannot be written ends the other capture.
	require.NoError(t, os.Mkdir(filepath.Join(dir, "x.nic1.pcapng"), 0o700))
	status, _, stderr = run(t, newApp(nil, nil), fmt.Sprintf("capture --of %d -w %s", os.Getpid(), filepath.Join(dir, "x.pcapng")))
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "x.nic1.pcapng")
	require.NotContains(t, stderr, "canceled")
}

// statWithProgress is stat for commands that print their progress on stderr.
func statWithProgress(t *testing.T, line string) string {
	t.Helper()
	status, stdout, stderr := run(t, newApp(nil, nil), line)
	require.Zero(t, status, stderr)
	return stdout
}

func TestCaptureFiles(t *testing.T) {
	peer := func(pid int, device string) debugclient.Peer {
		p := debugclient.Peer{PID: pid}
		p.Report.Device.Name = device
		return p
	}
	require.Equal(t, []string{"/d/x"}, captureFileNames("/d/x", []debugclient.Peer{peer(1, "a")}))
	require.Equal(t, []string{"/d.e/x.a", "/d.e/x.b"}, captureFileNames("/d.e/x", []debugclient.Peer{peer(1, "a"), peer(1, "b")}))
	require.Equal(t, []string{"/d/my.x.a.pcapng.zst", "/d/my.x.b.pcapng.zst"}, captureFileNames("/d/my.x.pcapng.zst", []debugclient.Peer{peer(1, "a"), peer(1, "b")}))
	require.Equal(t, []string{"/d/x.1-a.pcapng", "/d/x.2-a.pcapng", "/d/x.b.pcapng"},
		captureFileNames("/d/x.pcapng", []debugclient.Peer{peer(1, "a"), peer(2, "a"), peer(2, "b")}))
}

// TestCaptureUntilInterrupted captures the packets that are sent while it runs.
func TestCaptureUntilInterrupted(t *testing.T) {
	a, b := openServedDevices(t)
	file := filepath.Join(t.TempDir(), "out.pcapng")
	status, stdout, stderr := captureExchange(t, a, b, "-j -w "+file)
	require.Zero(t, status, stderr)
	var result struct {
		File  string `json:"file"`
		Bytes int    `json:"bytes"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &result))
	require.Equal(t, file, result.File)
	require.Greater(t, result.Bytes, 2*selfTestBytes, "the whole exchange")
}
