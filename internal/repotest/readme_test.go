package repotest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readmeProgram returns the lines of the first Go block of README.md, which is a
// complete program.
func readmeProgram(t *testing.T) (lines []string) {
	t.Helper()
	for _, d := range documents(t) {
		if d.path != "README.md" {
			continue
		}
		for i, line := range d.lines {
			if line.fence != "go" {
				continue
			}
			if n := len(lines); n > 0 && d.lines[i-1].fence != "go" {
				return lines
			}
			lines = append(lines, line.text)
		}
	}
	return lines
}

// TestReadmeProgramIsShort checks that the program has at most 30 lines without its
// imports and the helper for errors.
func TestReadmeProgramIsShort(t *testing.T) {
	core, n := false, 0
	for _, line := range readmeProgram(t) {
		switch {
		case strings.HasPrefix(line, "type "):
			core = true
		case strings.HasPrefix(line, "func check("):
			core = false
		}
		if core && strings.TrimSpace(line) != "" {
			n++
		}
	}
	require.Positive(t, n)
	require.LessOrEqual(t, n, 30)
}

// TestReadmeProgram builds and runs the program. Its output must be the one in its last
// comment, and if the device cannot be opened it must exit with an error message.
func TestReadmeProgram(t *testing.T) {
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "example.exe")
	text := strings.Join(readmeProgram(t), "\n")
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	build := exec.Command("go", "build", "-o", binary, source)
	build.Dir = root // the module that the program imports
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	run := func(env ...string) (stdout, stderr string, err error) {
		c := exec.Command(binary)
		c.Env = append(os.Environ(), env...)
		var o, e bytes.Buffer
		c.Stdout, c.Stderr = &o, &e
		err = c.Run()
		return o.String(), e.String(), err
	}
	free := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250)) // other tests use 127.0.0.1
	for _, addr := range []string{"", free, "127.0.0.1:21000-21999"} {
		stdout, stderr, err := run("SOFTRNIC_ADDR="+addr, "SOFTRNIC_DEBUG=", "SOFTRNIC_LOG=")
		require.NoError(t, err, stderr)
		require.Equal(t, "SUCCESS 42 hello, RDMA\n", stdout)
		require.Contains(t, text, "// "+strings.TrimSpace(stdout))
		require.Empty(t, stderr)
	}
	_, stderr, err := run("SOFTRNIC_ADDR=203.0.113.1")
	require.Error(t, err)
	require.Contains(t, stderr, "no interface of this machine has that address")
	require.NotContains(t, stderr, "goroutine")
}
