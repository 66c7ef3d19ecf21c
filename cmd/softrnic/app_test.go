package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/rnic"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestMain runs the tests, or the agent of the mpirun that a test runs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "mpirun" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// run runs a command line and returns its exit status and outputs.
func run(t *testing.T, a *app, line string) (status int, stdout, stderr string) {
	t.Helper()
	var out, diag bytes.Buffer
	a.stdout, a.stderr = &out, &diag
	status = a.runCommand(t.Context(), strings.Fields(line))
	return status, out.String(), diag.String()
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// quiet gives the test its own directories for sockets and settings.
func quiet(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // the path of t.TempDir is too long for a socket on macOS
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("TMPDIR", dir)
	for _, name := range []string{"SOFTRNIC_ADDR", "SOFTRNIC_IMPAIR", "SOFTRNIC_DEBUG", "SOFTRNIC_LINK", "SOFTRNIC_LOG"} {
		t.Setenv(name, "")
	}
}

// TestInvalidEnvironment checks the status and the text for a variable with an invalid value.
func TestInvalidEnvironment(t *testing.T) {
	for variable, want := range map[string]string{
		"SOFTRNIC_ADDR=127.0.0.300":  "\"127.0.0.300\" is not an address",
		"SOFTRNIC_DEBUG=aut":         "want \"auto\"",
		"SOFTRNIC_IMPAIR=los 1%":     "did you mean \"loss\"?",
		"SOFTRNIC_LINK=nogso,portbl": "did you mean \"portable\"?",
		"SOFTRNIC_LOG=dbug":          "did you mean \"debug\"?",
	} {
		quiet(t)
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
		var out, errs bytes.Buffer
		require.Equal(t, statusUsage, newApp(&out, &errs).runCommand(t.Context(), []string{"devinfo"}), variable)
		require.Contains(t, errs.String(), name)
		require.Contains(t, errs.String(), want)
	}
}

func TestExitStatus(t *testing.T) {
	quiet(t)
	for _, c := range []struct {
		line   string
		status int
		text   string // in stderr if the status is not 0
	}{
		{"", 0, ""},
		{"--help", 0, ""},
		{"version", 0, ""},
		{"version --json", 0, ""},
		{"stat", 0, ""},
		{"stat history", 0, ""},
		{"devinfo", 0, ""},
		{"devinfo --addr 127.0.0.77", 0, ""},
		{"version --addr [::1]", 2, "opens no device"},
		{"devinfo --device uverbs:none", 1, "no RDMA device"},
		{"devinfo --device rxe0", 2, "want a device of the kernel such as uverbs:rxe0"},
		{"devinfo --device uverbs:rxe0 --impair ecn", 2, "use tc(8) with netem"},
		{"rping -c -a 192.0.2.1 --device uverbs:none", 1, "no RDMA device"},
		{"ucmatose -s 192.0.2.1 --device uverbs:none", 1, "no RDMA device"},
		{"sdp cat --device uverbs:none 192.0.2.1 5", 1, "no RDMA device"},
		{"udaddy --device uverbs:rxe0", 2, "softrnic udaddy does not run on a device of the kernel: its requests go through queue pair 1"},
		{"mpirun --device uverbs:rxe0 -n 1 true", 2, "the programs that it starts open their devices themselves"},
		{"capture --device uverbs:rxe0", 2, "use tcpdump(8)"},
		{"devinfo --addr [127.0.0.1]", 2, "is not an address"},
		{"devinfo --addr 203.0.113.1,127.0.0.1:4791-4899", 0, ""},
		{"devinfo --addr 203.0.113.1,203.0.113.2:4791-4899", 1, "bind 203.0.113.1:4791: no interface of this machine has that address"},
		{"devinfo --addr 127.0.0.1:4900-4999", 0, ""},
		{"devinfo -d other", 1, `IB device "other" not found; the device is softrnic`},
		{"devinfo --addr 203.0.113.1", 1, "no interface of this machine has that address"},
		{"stat --of 1", 1, "process 1 has no debug endpoint of yours in "},
		{"stat --of 999999999", 1, "no process 999999999; no process of yours shows a device in "},
		{"stat --of nic7", 1, `"nic7": no such process or device; no process of yours shows a device in `},
		{"capture --of 999999999 -w x", 1, "start programs with SOFTRNIC_DEBUG=auto in their environment"},
		{"stat --of 127.0.0.1:1", 1, "debug endpoint 127.0.0.1:1"},
		{"stat --qp 17", 1, "no queue pair 0x11"},
		{"history", 0, ""},
		{"history -h", 0, ""},
		{"capture --of nobody -w x.pcapng", 1, `"nobody": no such process or device`},

		{"nosuch", 2, "unknown command \"nosuch\" of `softrnic`; want one of capture, "},
		{"stat nosuch", 1, `"nosuch": no such process or device`},
		{"stat 999999999", 1, "no process 999999999"},
		{"stat history nosuch", 1, `"nosuch": no such process or device`},
		{"history 999999999", 1, "no process 999999999"},
		{"capture 999999999 -w x", 1, "no process 999999999"},
		{"stat 1 2", 2, `softrnic stat takes one process or device, got ["1" "2"]`},
		{"stat 1 --of 2", 2, `softrnic stat: --of 2 and "1": want one of them`},
		{"history --qp abc", 2, `--qp: queue pair number "abc"`},
		{"stat --qp abc --of nobody", 2, `--qp: queue pair number "abc"`},
		{"version --impair nonsense", 2, "--impair: "},
		{"stat --impair nonsense", 2, "--impair: "},
		{"version --addr nowhere", 2, `--addr: "nowhere" is not an address`},
		{"pingpong rc --impair nonsense", 2, "--impair: "},
		{"version now", 2, "takes no argument"},
		{"doctor --fast", 2, "unknown flag: --fast; `softrnic doctor --help` lists the flags"},
		{"devinfo --ib-port", 2, "flag needs an argument"},
		{"devinfo --ib-port one", 2, `-i, --ib-port: "one": want a whole number`},
		{"devinfo --ib-port 2", 2, "--ib-port 2: this adapter has one port, 1"},
		{"devinfo --addr 127.0.0.1:x", 2, `--addr: "127.0.0.1:x" is not an address: want for example`},
		{"devinfo --addr localhost", 2, "is not an address"},
		{"devinfo --impair slowly", 2, "--impair: "},
		{"doctor --impair slowly", 2, "--impair: "},
		{"stat --qp 0x1000000", 2, "--qp: queue pair number"},
		{"stat --watch soon", 2, `-w, --watch: "soon": want a time such as 10s or 1m30s`},
		{"stat --watch -1s", 2, "--watch -1s: want an interval such as 1s"},
		{"stat --prometheus --json", 2, "--prometheus: only --of is permitted with it"},
		{"capture", 2, "capture needs --of"},
		{"capture --of 1", 2, "capture needs -w"},
		{"capture --of 1 -w x --for -1s", 2, "--for -1s: want a time"},
	} {
		t.Run(c.line, func(t *testing.T) {
			status, stdout, stderr := run(t, newApp(nil, nil), c.line)
			require.Equal(t, c.status, status, stderr)
			if c.status != 0 {
				require.True(t, strings.HasPrefix(stderr, "softrnic: "), stderr)
				require.Contains(t, stderr, c.text)
				require.Empty(t, stdout)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	quiet(t)
	for _, c := range []struct {
		name, value string
		status      int
		text        string
	}{
		{"SOFTRNIC_ADDR", "nowhere", 2, `SOFTRNIC_ADDR: "nowhere" is not an address`},
		{"SOFTRNIC_IMPAIR", "slowly", 2, "SOFTRNIC_IMPAIR: "},
		{"SOFTRNIC_DEBUG", "0.0.0.0:80", 2, "SOFTRNIC_DEBUG: debug endpoint \"0.0.0.0:80\": 0.0.0.0 is not a loopback address"},
		{"SOFTRNIC_DEBUG", "unix:/nonexistent/s", 0, ""}, // for the log
		{"SOFTRNIC_DEBUG", "off", 0, ""},
		{"SOFTRNIC_DEBUG", "127.0.0.1:0", 0, ""},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			status, _, stderr := run(t, newApp(nil, nil), "devinfo")
			require.Equal(t, c.status, status, stderr)
			require.Contains(t, stderr, c.text)
		})
	}
	t.Setenv("SOFTRNIC_ADDR", "127.0.0.5:5000")
	o, err := newApp(nil, nil).deviceOptions()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.5:5000", o.Addrs)
	o, err = (&app{addr: "127.0.0.6", impair: "loss 1%"}).deviceOptions()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.6", o.Addrs, "a flag goes before the environment")
	require.Equal(t, "loss 1%", o.Impair)
}

// TestHelp checks that every command has a help text.
func TestHelp(t *testing.T) {
	_, root, _ := run(t, newApp(nil, nil), "-h")
	for _, line := range []string{"stat", "history", "stat history", "capture", "devinfo", "doctor", "version"} {
		status, stdout, _ := run(t, newApp(nil, nil), line+" -h")
		require.Zero(t, status)
		require.NotEqual(t, root, stdout)
		require.Contains(t, stdout, "softrnic "+line)
	}
}

// TestOpenServes checks that `softrnic stat` finds the devices of the tools, and that the tools run
// where there is no directory for sockets.
func TestOpenServes(t *testing.T) {
	quiet(t)
	dev, err := newApp(nil, nil).openDefault()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(dev.(*rnic.Device).DebugAddr(), "unix:"))
	require.NoError(t, dev.Close())

	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", "/nonexistent")
	dev, err = newApp(nil, nil).openDefault()
	require.NoError(t, err)
	require.Empty(t, dev.(*rnic.Device).DebugAddr())
	require.NoError(t, dev.Close())
}

func TestVersion(t *testing.T) {
	_, stdout, _ := run(t, newApp(nil, nil), "version")
	require.Regexp(t, `^softrnic \S+(| \w+), go1\S+ \w+/\w+\n$`, stdout)
	_, stdout, _ = run(t, newApp(nil, nil), "version -j")
	require.Contains(t, stdout, `"version": `)
}

// TestSizes checks that every flag with a number of bytes accepts 1024, 1K and 1KiB, and that the
// error for an invalid value is in bytes.
func TestSizes(t *testing.T) {
	quiet(t)
	for _, c := range []struct{ line, want string }{
		{"pingpong rc -s %s", "-s: messages of -1024 bytes cannot be"},
		{"pingpong uc -m %s", "-m -1024: the MTU is"},
		{"perf send_bw -s %s", "-s: -1024 is not one of"},
		{"perf send_bw -m %s", "-m -1024: the MTU is"},
		{"perf send_lat -I %s", "-I: -1024 is not one of"},
		{"rping -s -S %s", "-S: invalid size -1024"},
		{"ucmatose -S %s", "-1024 bytes"},
		{"udaddy -S %s", "-S: messages of -1024 bytes"},
		{"sdp cat -l 127.0.0.1:1 --buffer-size %s", "-1024"},
	} {
		for _, size := range []string{"-1024", "-1K", "-1KiB"} {
			line := fmt.Sprintf(c.line, size)
			status, _, stderr := run(t, newApp(nil, nil), line)
			require.Equal(t, 2, status, "%s: %s", line, stderr)
			require.Contains(t, stderr, c.want, line)
		}
	}
}

// TestVersionFlag checks that --version prints one line.
func TestVersionFlag(t *testing.T) {
	status, stdout, _ := run(t, newApp(nil, nil), "--version")
	require.Zero(t, status)
	require.Regexp(t, `^softrnic \S+.* go1\S* \w+/\w+\n$`, stdout)
}

// TestOutputErrors checks that a command fails if standard output cannot be written.
func TestOutputErrors(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, line := range []string{"version", "version --json", "devinfo", "--version"} {
		var diag bytes.Buffer
		require.Equal(t, 1, newApp(full, &diag).runCommand(t.Context(), strings.Fields(line)), line)
		require.Contains(t, diag.String(), "no space left on device")
	}
}

// TestSuggestions checks the suggestion in each error. In the lines a plus stands for a blank within
// an argument.
func TestSuggestions(t *testing.T) {
	for line, want := range map[string]string{
		"pref":                               "did you mean `softrnic perf`?",
		"ib_write_bw":                        "did you mean `softrnic perf write_bw`?",
		"ibv_devinfo":                        "did you mean `softrnic devinfo`?",
		"mpriun -n 2 true":                   "did you mean `softrnic mpirun`?",
		"perf write_bx":                      "did you mean `softrnic perf write_bw`?",
		"sdp cta":                            "did you mean `softrnic sdp cat`?",
		"devinfo --jsno":                     "did you mean --json?",
		"perf write_bw --itres 5":            "did you mean --iters?",
		"rping --vailadte":                   "did you mean --validate?",
		"mpirun --bnid-to core true":         "did you mean --bind-to?",
		"mpirun --bind-to coer -n 1 sh":      `did you mean "core"?`,
		"mpirun --net rmda -n 1 sh":          `did you mean "rdma"?`,
		"sdp cat --flow-contrl nic":          "did you mean --flow-control?",
		"sdp cat --flow-control credti -l 1": `did you mean "credit"?`,
		"devinfo --impair lsos+1%":           `did you mean "loss"?`,
	} {
		args := strings.Split(line, " ")
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "+", " ")
		}
		var out, errs bytes.Buffer
		require.Equal(t, statusUsage, newApp(&out, &errs).runCommand(t.Context(), args), "%s: %s", line, errs.String())
		require.Contains(t, errs.String(), want, line)
		require.Empty(t, out.String(), line)
	}
}
