//go:build unix

package mpirun

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRanksMeet(t *testing.T) {
	for _, version := range []string{"1", "2"} {
		for _, port := range []bool{false, true} {
			r := runJob(t, Options{Programs: []Program{program(4, "exchange")}, Environ: []string{"SOFTRNIC_PMI=" + version}, Port: port})
			require.NoError(t, r.err)
			lines := r.lines(t)
			slices.Sort(lines)
			require.Equal(t, []string{"rank 0 of 4 on node 0 is done", "rank 1 of 4 on node 0 is done", "rank 2 of 4 on node 0 is done", "rank 3 of 4 on node 0 is done"}, lines)
			require.Empty(t, r.stderr)
		}
	}
}

func TestProgramsOfTheirOwn(t *testing.T) {
	a, b := program(2, "say", "a", "$X", "$Y", "$PMI_SIZE", "$MPI_LOCALRANKID/$MPI_LOCALNRANKS"), program(1, "say", "b", "$X", "$Y", "$PMI_SIZE")
	a.Environ = []string{"Y=a"}
	t.Setenv("PMI_SIZE", "99") // of another job, of which this process is a rank
	t.Setenv("PMI_PORT", "nowhere")
	r := runJob(t, Options{Programs: []Program{a, b}, Environ: []string{"X=all", "Y=all"}, Prefix: true})
	require.NoError(t, r.err)
	lines := r.lines(t)
	slices.Sort(lines)
	require.Equal(t, []string{"[0] rank 0 a all a 3 0/3", "[1] rank 1 a all a 3 1/3", "[2] rank 2 b all all 3"}, lines)
}

func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	t.Chdir(dir)
	a, b, c := program(1, "where"), program(1, "where"), program(1, "where")
	b.Dir, c.Dir = "sub", "/"
	r := runJob(t, Options{Programs: []Program{a, b, c}})
	require.NoError(t, r.err)
	lines := r.lines(t)
	slices.Sort(lines)
	require.Equal(t, []string{"/", dir, filepath.Join(dir, "sub")}, lines)

	a.Dir = "nowhere"
	f := runJob(t, Options{Programs: []Program{a}}).failed(t)
	require.Contains(t, f.Reason, filepath.Join(dir, "nowhere")+" does not exist")
}

func TestFilesForTheOutput(t *testing.T) {
	dir := t.TempDir()
	p := program(2, "question", "oops")
	q := program(1, "say", "x")
	r := runJob(t, Options{Programs: []Program{p, q}, Outfile: filepath.Join(dir, "%h-%p-%r-%n%%.out"), Errfile: filepath.Join(dir, "err"), Prefix: true})
	require.NoError(t, r.err)
	require.Empty(t, r.stdout)
	for name, want := range map[string]string{
		"localhost-0-0-0%.out": "[0] how many? so many: ",
		"localhost-0-1-0%.out": "[1] how many? so many: ",
		"localhost-1-2-0%.out": "[2] rank 2 x\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	both, err := os.ReadFile(filepath.Join(dir, "err")) // one file for two ranks
	require.NoError(t, err)
	require.Contains(t, []string{"[0] oops\n[1] oops", "[1] oops\n[0] oops"}, string(both))

	require.Error(t, runJob(t, Options{Programs: []Program{p}, Outfile: filepath.Join(dir, "nowhere", "x")}).err)
	if _, err := os.Stat("/dev/full"); err == nil {
		require.ErrorContains(t, runJob(t, Options{Programs: []Program{p}, Outfile: "/dev/full"}).err, "write output of ranks")
	}
}

// TestInput checks that standard input is forwarded to rank 0, whatever its length.
func TestInput(t *testing.T) {
	text := strings.Repeat("0123456789abcde\n", 1<<16) // a megabyte, more than the buffers on the path hold
	r := job0(t, Options{Programs: []Program{program(3, "cat")}, Stdin: strings.NewReader(text)})
	require.NoError(t, r.err)
	require.True(t, r.stdout == text)

	// A rank that does not read its input does not delay the end of the job.
	r = runJob(t, Options{Programs: []Program{program(1, "say", "no")}, Stdin: strings.NewReader(text)})
	require.NoError(t, r.err)

	// A prompt is printed before its line ends, and the answer reaches the rank.
	in, write := io.Pipe()
	stdout, done := start(t, Options{Programs: []Program{program(1, "question")}, Stdin: in, Terminal: true})
	stdout.wait("how many? ", 1)
	_, err := io.WriteString(write, "3\n")
	require.NoError(t, err)
	require.Equal(t, "how many? so many: 3\n", (<-done).stdout)
	require.NoError(t, write.Close())
}

func TestLinesOfManyRanks(t *testing.T) {
	const ranks, each = 4, 500
	r := job0(t, Options{Programs: []Program{program(ranks, "talk", strconv.Itoa(each))}})
	require.NoError(t, r.err)
	next := make([]int, ranks)
	for _, text := range r.lines(t) {
		var rank, n int
		var rest string
		_, err := fmt.Sscanf(text+"$", "%d:%d:%s", &rank, &n, &rest)
		require.NoError(t, err, text)
		require.Equal(t, next[rank], n)
		next[rank]++
		require.Empty(t, strings.Trim(rest, string(rune('a'+rank))+"$"), text)
	}
	require.Equal(t, []int{each, each, each, each}, next)
}

// job0 runs a job without logging its output.
func job0(t *testing.T, o Options) result {
	_, done := start(t, o)
	return <-done
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		programs []Program
		status   int
		want     string // with 4711 in place of each pid
	}{
		{[]Program{program(4, "exit", "2", "3")}, 3, "rank 2 on localhost (pid 4711) exited with status 3; the other 3 ranks were ended"},
		{[]Program{program(3, "signal", "1", "9")}, 137, "rank 1 on localhost (pid 4711) was ended by signal 9 (killed); the other 2 ranks were ended"},
		{[]Program{program(2, "signal", "0", "15")}, 143, "rank 0 on localhost (pid 4711) was ended by signal 15 (terminated); the other rank was ended"},
		{[]Program{program(3, "abort", "1", "7", "50% is", "no", "memory;", "none")}, 7, "rank 1 on localhost (pid 4711) aborted the job with code 7: 50% is no memory; none; the other 2 ranks were ended"},
		{[]Program{program(2, "exit", "0", "0")}, 1, "rank 0 on localhost (pid 4711) exited with status 0 in the middle of the job, without MPI_Finalize; the other rank was ended"},
		{[]Program{program(2, "leave", "1")}, 1, "rank 0 waits at the fence for rank 1, which has ended or finalized; the other rank was ended"},
		{[]Program{program(1, "say"), {N: 1, Args: []string{"/nonexistent/x"}}}, 127, "rank 1 on localhost could not be started: fork/exec /nonexistent/x: no such file or directory"},
		{[]Program{{N: 1, Args: []string{"/etc/passwd"}}}, 126, "rank 0 on localhost could not be started: fork/exec /etc/passwd: permission denied"},
		{[]Program{{N: 1, Args: []string{"softrnic-no-such-program"}}}, 127, `rank 0 on localhost could not be started: exec: "softrnic-no-such-program": executable file not found in $PATH`},
		{[]Program{program(1, "nonsense")}, 5, "rank 0 on localhost (pid 4711) exited with status 5"},
	} {
		f := runJob(t, Options{Programs: c.programs}).failed(t)
		why := f.Reason
		if i := strings.Index(why, "(pid "); i >= 0 {
			why = why[:i] + "(pid 4711" + why[i+strings.Index(why[i:], ")"):]
		}
		require.Equal(t, Failure{c.status, c.want}, Failure{f.Status, why})
	}
}

func TestInvalidMessages(t *testing.T) {
	r := runJob(t, Options{Programs: []Program{program(1, "nonsense")}})
	require.Contains(t, r.stderr, "rank 0: malformed PMI message")
	require.Equal(t, "EOF\n", r.stdout)
}

func TestForeignConnections(t *testing.T) {
	r := runJob(t, Options{Programs: []Program{program(1, "strangers")}, Port: true})
	require.NoError(t, r.err)
	require.Contains(t, r.stderr, "localhost: 3 connections rejected that are not from ranks")
	require.Contains(t, r.stderr, "wrong secret")
}

// TestTimeout checks that a job of which one rank does not enter a fence ends at the timeout.
func TestTimeout(t *testing.T) {
	f := runJob(t, Options{Programs: []Program{program(3, "silent", "1")}, Timeout: 1500 * time.Millisecond}).failed(t)
	require.Equal(t, 124, f.Status)
	require.Contains(t, f.Reason, "no end after 1.5s: ")
	require.Contains(t, f.Reason, "rank")
}

// TestWholeTreeEnds checks that all processes end when a rank fails, also one with a session of its
// own that ignores SIGTERM.
func TestWholeTreeEnds(t *testing.T) {
	w := newWitness(t)
	fail := filepath.Join(t.TempDir(), "fail")
	require.NoError(t, mkfifo(fail))
	_, done := start(t, Options{Programs: []Program{program(2, "family", w.path, fail)}, Grace: 50 * time.Millisecond})
	w.waitFor(t, 4) // two ranks and their children, all of which ignore SIGTERM
	f, err := os.OpenFile(fail, os.O_WRONLY, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	r := <-done
	require.Equal(t, 3, r.failed(t).Status)
	w.waitNone(t)
}

// TestSignals checks that the user's first signal is forwarded as SIGTERM, and the second one
// kills.
func TestSignals(t *testing.T) {
	w := newWitness(t)
	signals := make(chan os.Signal, 2)
	stdout, done := start(t, Options{Programs: []Program{program(2, "family", w.path)}, Signals: signals, Grace: time.Hour})
	w.waitFor(t, 4)
	stdout.wait("ready\n", 4)
	signals <- os.Interrupt
	signals <- os.Interrupt
	f := (<-done).failed(t)
	require.Equal(t, Failure{130, "ended by the user (interrupt); 2 ranks that still ran were ended"}, *f)
	w.waitNone(t)

	signals <- syscall.SIGTERM // before anything is started
	f = runJob(t, Options{Programs: []Program{program(2, "silent", "0")}, Signals: signals}).failed(t)
	require.Equal(t, 143, f.Status)
}

// TestLeftProcessesEnd checks that processes that ranks leave behind are ended when all ranks have
// exited with status 0.
func TestLeftProcessesEnd(t *testing.T) {
	w := newWitness(t)
	r := runJob(t, Options{Grace: 50 * time.Millisecond, Programs: []Program{{N: 1, Args: []string{"sh", "-c",
		`"$0" rank stubborn "$1" & read x; echo "$x"`, os.Args[0], w.path}}}, Stdin: waitFor(t, w)})
	require.NoError(t, r.err)
	require.Contains(t, r.stdout, "go\n")
	w.waitNone(t)
}

// waitFor is an input that is ready when a process holds the witness open.
func waitFor(t *testing.T, w *witness) io.Reader {
	in, write := io.Pipe()
	go func() {
		select {
		case <-w.said:
			io.WriteString(write, "go\n")
		case <-t.Context().Done():
		}
		write.Close()
	}()
	return in
}

func TestAgentDies(t *testing.T) {
	w := newWitness(t)
	_, done := start(t, Options{Programs: []Program{program(3, "killagent", w.path)}})
	w.waitFor(t, 3)
	f := (<-done).failed(t)
	require.Equal(t, Failure{1, "localhost was lost with ranks 0-2: agent has ended (" + filepath.Base(os.Args[0]) + ": signal: killed)"}, *f)
	if pdeathsig {
		w.waitNone(t)
	}
}

// TestLauncherDies checks that no process is left when the launcher is killed.
func TestLauncherDies(t *testing.T) {
	w := newWitness(t)
	c := exec.Command(os.Args[0], "rank", "launcher", w.path)
	require.NoError(t, c.Start())
	w.waitFor(t, 4)
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	w.waitNone(t)
}

// TestInterrupt checks that no process is left when the launcher gets Ctrl-C.
func TestInterrupt(t *testing.T) {
	w := newWitness(t)
	c := exec.Command(os.Args[0], "rank", "launcher", w.path)
	stdout := newText()
	c.Stdout = stdout
	require.NoError(t, c.Start())
	w.waitFor(t, 4)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	require.NoError(t, c.Wait())
	require.Contains(t, stdout.String(), "ended by the user (interrupt); 2 ranks that still ran were ended")
	w.waitNone(t)
}

func TestHostsThatCannotBeReached(t *testing.T) {
	missing := runJob(t, Options{Programs: []Program{program(2, "say")}, Hosts: []Host{{"node1", 1}, {"node2", 1}}, Launch: []string{"/nonexistent/ssh"}}).failed(t)
	require.Equal(t, "node1 cannot be reached, where rank 0 should run: node1: fork/exec /nonexistent/ssh: no such file or directory", missing.Reason)

	ssh := filepath.Join(t.TempDir(), "ssh")
	require.NoError(t, os.WriteFile(ssh, []byte("#!/bin/sh\necho \"no route to $1\" >&2\nexit 255\n"), 0o700))
	r := runJob(t, Options{Programs: []Program{program(1, "say")}, Hosts: []Host{{"node1", 1}}, Launch: []string{ssh}})
	require.Equal(t, "node1 cannot be reached, where rank 0 should run: no reply from an agent of softrnic mpirun (ssh: exit status 255)", r.failed(t).Reason)
	require.Contains(t, r.stderr, "node1: no route to node1\n")
}

// TestOutputBeforeAgent checks a shell that prints a text before the agent starts, and one that starts no
// agent.
func TestOutputBeforeAgent(t *testing.T) {
	ssh := filepath.Join(t.TempDir(), "ssh")
	require.NoError(t, os.WriteFile(ssh, []byte("#!/bin/sh\nprintf 'Welcome to %s' \"$1\"\neval \"$2\"\n"), 0o700))
	r := runJob(t, Options{Programs: []Program{program(4, "exchange")}, Hosts: []Host{{"node1", 1}, {"node2", 1}}, PPN: 1, Launch: []string{ssh}})
	require.NoError(t, r.err)
	require.Contains(t, r.stderr, "node2: Welcome to node2")
	for _, line := range []string{"rank 0 of 4 on node 0", "rank 1 of 4 on node 1", "rank 2 of 4 on node 0", "rank 3 of 4 on node 1"} {
		require.Contains(t, r.stdout, line)
	}
	require.NoError(t, os.WriteFile(ssh, []byte("#!/bin/sh\nexec yes\n"), 0o700))
	r = job0(t, Options{Programs: []Program{program(1, "say")}, Hosts: []Host{{"node1", 1}}, Launch: []string{ssh}})
	require.Contains(t, r.failed(t).Reason, "no agent of this version")
}

func TestGoSource(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module example.org/ring\n\ngo 1.24\n",
		"main.go":        "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"built \" + os.Args[1] + \"\\n\") }\n",
		"lib/lib.go":     "package lib\n",
		"broken/main.go": "package main\n\nfunc main() { nonsense }\n",
		"empty/readme":   "",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	t.Setenv("TMPDIR", t.TempDir())
	r := runJob(t, Options{Programs: []Program{{N: 1, Args: []string{dir, "a"}}, {N: 1, Args: []string{dir, "b"}}}})
	require.NoError(t, r.err)
	lines := r.lines(t)
	slices.Sort(lines)
	require.Equal(t, []string{"built a", "built b"}, lines)
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "softrnic-mpirun-*"))
	require.NoError(t, err)
	require.Empty(t, left)

	r = runJob(t, Options{Programs: []Program{{N: 1, Args: []string{filepath.Join(dir, "broken")}}}})
	require.ErrorContains(t, r.err, "building")
	require.Contains(t, r.stderr, "nonsense")
	require.ErrorContains(t, runJob(t, Options{Programs: []Program{{N: 1, Args: []string{filepath.Join(dir, "lib")}}}}).err, "want package main")

	t.Chdir(dir)
	for word, want := range map[string][2]string{
		".":                    {".", "."},
		"./main.go":            {".", "main.go"},
		"lib":                  {"lib", "."},
		"example.org/x/cmd/y":  {"", "example.org/x/cmd/y"},
		"empty":                {"", ""},
		"ls":                   {"", ""},
		"./nowhere.example/x":  {"", ""},
		"/nowhere.example/x":   {"", ""},
		"go.mod":               {"", ""},
		"node/bin/program.exe": {"", ""},
	} {
		in, what, ok := parseGoSource(word)
		require.Equal(t, want[1] != "", ok, word)
		if ok {
			require.Equal(t, want, [2]string{in, what}, word)
		}
	}
}
