package dropin_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

// TestBadInput checks the error of each wrong call.
func TestBadInput(t *testing.T) {
	for _, source := range []string{"badinput.c", "batches.c"} {
		r := command{args: []string{buildProgram(t, source)}}.runProgram(t)
		require.Zero(t, r.code, r)
		require.Regexp(t, `^\d+ lines, 0 wrong\n$`, r.stdout)
	}
}

// TestFork checks that a child can be the first to use a device, that one of a process that loaded the engine
// finds none, and that one of a process that used a device gets errors, does not hang, and leaves its parent alone.
func TestFork(t *testing.T) {
	program := buildProgram(t, "fork.c")
	for _, when := range []string{"first", "loaded", "after"} {
		r := command{args: []string{program, when}}.runProgram(t)
		require.Zero(t, r.code, r)
		require.Equal(t, "child 42 0\n", r.stdout, r)
	}
}

// TestForkHolds checks that a child by fork does not hold the address of its parent, which has ended
// or was killed.
func TestForkHolds(t *testing.T) {
	program := buildProgram(t, "forkholds.c")
	for _, how := range []string{"ends", "killed"} {
		r := command{args: []string{program, how}, environ: []string{"SOFTRNIC_ADDR=127.0.113.10"}}.runProgram(t)
		require.Zero(t, r.code, r)
		require.Equal(t, "ok\n", r.stdout, r)
	}
}

// TestUnmappedMemory checks that memory unmapped after its registration ends requests with a status.
func TestUnmappedMemory(t *testing.T) {
	program := buildProgram(t, "unmap.c")
	const localProtection, remoteOperation = 4, 11 // enum ibv_wc_status
	for kind, want := range map[string]string{
		"remote":  fmt.Sprintln(remoteOperation),
		"local":   fmt.Sprintln(localProtection),
		"receive": fmt.Sprintf("%d\n%d\n", remoteOperation, localProtection),
	} {
		r := command{args: []string{program, kind}}.runProgram(t)
		require.Zero(t, r.code, "%s: %v", kind, r)
		require.Equal(t, want, r.stdout, kind)
	}
}

// TestEvents checks completion and asynchronous events.
func TestEvents(t *testing.T) {
	program := buildProgram(t, "events.c")
	for _, name := range []string{"channel", "unacknowledged", "shared-queue", "established", "access", "overrun"} {
		t.Run(name, func(t *testing.T) {
			r := command{args: []string{program, name}}.runProgram(t)
			require.Zero(t, r.code, r)
			require.Equal(t, "ok\n", r.stdout)
		})
	}
}

// TestContexts checks contexts with live objects, and those of a program that is short of descriptors or memory.
func TestContexts(t *testing.T) {
	program := buildProgram(t, "contexts.c")
	for _, name := range []string{"close", "flags", "descriptors", "no-memory"} {
		t.Run(name, func(t *testing.T) {
			r := command{args: []string{program, name}}.runProgram(t)
			require.Zero(t, r.code, r)
			require.Equal(t, "ok\n", r.stdout)
		})
	}
}

// TestSignals checks that signals act on a program with the engine as they do without.
func TestSignals(t *testing.T) {
	program := buildProgram(t, "signals.c")
	for _, c := range []struct {
		name   string
		signal syscall.Signal // that ends the program
		code   int
	}{
		{name: "profile"},
		{name: "profile-after"},
		{name: "profile-old"},
		{name: "user"},
		{name: "call"},
		{name: "exit", code: 50 + int(syscall.SIGPROF)},
		{name: "exit", code: 50 + int(syscall.SIGPROF)}, // each interrupts another instruction
		{name: "exit", code: 50 + int(syscall.SIGPROF)},
		{name: "exit-elsewhere", code: 50},
		{name: "mask"},
		{name: "interrupted"},
		{name: "urgent"},
		{name: "term", signal: syscall.SIGTERM},
		{name: "int", signal: syscall.SIGINT},
		{name: "abort", signal: syscall.SIGABRT},
		{name: "fault", signal: syscall.SIGSEGV},
		{name: "fault-thread", signal: syscall.SIGSEGV},
		{name: "fault-list", signal: syscall.SIGSEGV},
		{name: "fault-inline", signal: syscall.SIGSEGV},
		{name: "fault-receive", signal: syscall.SIGSEGV},
		{name: "fault-before", code: 50 + int(syscall.SIGSEGV)},
		{name: "fault-after", code: 50 + int(syscall.SIGSEGV)},
		{name: "pipe", signal: syscall.SIGPIPE},
		{name: "pipe-ignored"},
		{name: "pipe-handled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := command{args: []string{program, c.name}}.runProgram(t)
			require.Equal(t, c.signal, r.signal, r)
			require.NotContains(t, r.stderr, "goroutine", "no report of the Go runtime")
			if c.signal == 0 {
				require.Equal(t, c.code, r.code, r)
			}
		})
	}
}

// TestCPlusPlus runs a program in C++ that uses exceptions and destructors.
func TestCPlusPlus(t *testing.T) {
	r := command{args: []string{buildProgram(t, "raii.cc")}}.runProgram(t)
	require.Zero(t, r.code, r)
	require.Equal(t, fmt.Sprintf("%d\n", syscall.EINVAL), r.stdout)
}

// TestAsyncWatch checks that ibv_asyncwatch opens the device and waits for events.
func TestAsyncWatch(t *testing.T) {
	programtest.NeedPrograms(t, "ibv_asyncwatch", "stdbuf")
	r := command{args: []string{"timeout", "-s", "INT", "2", "stdbuf", "-oL", "ibv_asyncwatch", "-d", "softrnic0"}}.runProgram(t)
	require.Contains(t, r.stdout, "softrnic0: async event FD", r)
	require.Equal(t, 124, r.code, "it runs until it is interrupted: %v", r)
}

// stressArgs returns the arguments of stress.c: 8 threads, 1,000 queue pairs and a number of requests.
func stressArgs(program string, requests int) []string {
	return []string{program, "8", "1000", fmt.Sprint(requests)}
}

func checkStress(t *testing.T, r result) {
	t.Helper()
	require.Zero(t, r.code, r)
	require.Equal(t, "child 42\n", r.stdout, r)
}

// TestStress posts from 8 threads on 1,000 queue pairs and forks in the middle: 50,000 requests, or 10 million.
func TestStress(t *testing.T) {
	requests := 50_000
	if runAll {
		requests = 10_000_000
	}
	r := command{args: stressArgs(buildProgram(t, "stress.c"), requests), limit: 20 * time.Minute}.runProgram(t)
	checkStress(t, r)
}

// A sanitizer is one of gcc's for the C layer of the engine. The programs are not built with it, so
// that its library must come first in LD_PRELOAD. The Go code is not instrumented.
type sanitizer struct {
	flag, library string
	symbol        string // prefix of functions that instrumented code calls
	environ       []string
}

var sanitizers = []sanitizer{
	{"address", "libasan.so", "__asan_", []string{"ASAN_OPTIONS=detect_leaks=0"}}, // Go does not free at the end
	{"thread", "libtsan.so", "__tsan_", []string{"TSAN_OPTIONS=exitcode=66"}},
}

// buildEngine builds the libraries with the sanitizer and returns the environment of programs, or skips the test.
func (s sanitizer) buildEngine(t *testing.T) (environ []string) {
	t.Helper()
	programtest.NeedPrograms(t, "gcc", "nm")
	file, err := exec.Command("gcc", "-print-file-name="+s.library).Output()
	require.NoError(t, err)
	library, err := filepath.EvalSymlinks(strings.TrimSpace(string(file)))
	if err != nil || !filepath.IsAbs(library) {
		t.Skip("not installed: " + s.library)
	}
	dir := t.TempDir()
	build := exec.Command("./build.sh", dir)
	build.Env = append(os.Environ(), "CGO_CFLAGS=-g -O1 -fno-omit-frame-pointer -fsanitize="+s.flag, "CGO_LDFLAGS=-fsanitize="+s.flag)
	text, err := build.CombinedOutput()
	require.NoError(t, err, string(text))
	symbols, err := exec.Command("nm", "-D", filepath.Join(dir, "libsoftrnic-engine.so")).Output()
	require.NoError(t, err)
	require.Contains(t, string(symbols), " U "+s.symbol, "the engine is not instrumented")
	return append([]string{"LD_PRELOAD=" + library + ":" + filepath.Join(dir, "libsoftrnic-preload.so")}, s.environ...)
}

// TestSanitizers runs the programs with the C layer of the engine under AddressSanitizer and ThreadSanitizer.
func TestSanitizers(t *testing.T) {
	if !runAll {
		t.Skip("builds two engines; set " + envAll)
	}
	for _, s := range sanitizers {
		t.Run(s.flag, func(t *testing.T) {
			environ := s.buildEngine(t)
			events, fork := buildProgram(t, "events.c"), buildProgram(t, "fork.c")
			for _, args := range [][]string{
				stressArgs(buildProgram(t, "stress.c"), 50_000),
				{events, "channel"}, {events, "unacknowledged"}, {events, "shared-queue"}, {events, "established"}, {events, "overrun"},
				{fork, "first"}, {fork, "after"},
				{buildProgram(t, "unmap.c"), "local"},
				{buildProgram(t, "raii.cc")},
			} {
				r := command{args: args, environ: environ, limit: 10 * time.Minute}.runProgram(t)
				require.Zero(t, r.code, "%s: %v", args, r)
				require.NotContains(t, r.stderr, "Sanitizer", args)
			}
			if s.flag == "address" { // which sees the use of destroyed objects
				r := command{args: []string{buildProgram(t, "badinput.c")}, environ: environ}.runProgram(t)
				require.NotZero(t, r.code)
				require.Contains(t, r.stderr, "AddressSanitizer: heap-use-after-free")
			}
		})
	}
}
