//go:build unix

package pmi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// envResult is the variable with the name of the file to which a rank writes its result.
const envResult = "SOFTRNIC_PMI_TEST_RESULT"

// playRole runs the role of a rank that a test has started, and returns the exit status.
func playRole(role string) int {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	m, err := Open(ctx)
	if err != nil {
		fmt.Println("rank ?:", err)
		return 3
	}
	switch role {
	case "exchange":
		for round := range 2 {
			value := func(rank int) string { return strings.Repeat(fmt.Sprintf("rank %d; ", rank), 1200*round+1) }
			if err = exchange(ctx, m, round, value); err != nil {
				break
			}
		}
		if _, notThere := m.Get(ctx, "nobody"); !errors.Is(notThere, ErrNotFound) {
			err = errors.Join(err, fmt.Errorf("nobody: %w", notThere))
		}
		if _, twice := Open(ctx); twice == nil {
			err = errors.Join(err, errors.New("opened twice"))
		}
		fmt.Printf("rank %d of %d on node %d of %s: %v\n", m.Rank(), m.Size(), m.Node(m.Rank()), m.JobID(), errors.Join(err, m.Finalize()))
	case "abort":
		if m.Rank() == 2 {
			err = m.Abort(7, "by rank 2")
			fmt.Println("abort:", err)
			os.Exit(7)
		}
		fmt.Println("fence:", m.Fence(ctx))
	case "orphan": // the manager's process that this rank is connected to dies
		syscall.Kill(os.Getppid(), syscall.SIGKILL)
		err := m.Fence(ctx)
		os.WriteFile(os.Getenv(envResult), fmt.Appendf(nil, "%t %v", errors.Is(err, ErrGone), err), 0o600)
	}
	return 0
}

// hydra returns a command of mpiexec.hydra that runs this program as ranks, in a role.
func hydra(t *testing.T, role, version string, args ...string) *exec.Cmd {
	path, err := exec.LookPath("mpiexec.hydra")
	if err != nil {
		t.Skip("needs mpiexec.hydra (Debian: package mpich)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, path, append(args, os.Args[0])...)
	c.Env = append(os.Environ(), envRole+"="+role, envVersion+"="+version, "GORACE=atexit_sleep_ms=0")
	c.WaitDelay = time.Second
	return c
}

func TestUnderHydra(t *testing.T) {
	for _, version := range []string{"1", "2"} {
		for _, args := range [][]string{{"-n", "4"}, {"-pmi-port", "-n", "4"}, {"-hosts", "localhost:2,127.0.0.1:2", "-launcher", "fork", "-n", "4"}} {
			t.Run("PMI-"+version+strings.Join(args, " "), func(t *testing.T) {
				out, err := hydra(t, "exchange", version, args...).CombinedOutput()
				require.NoError(t, err, "%s", out)
				var job string
				ranks := map[string]bool{}
				for line := range strings.Lines(string(out)) {
					var rank, size, node int
					var id string
					_, err := fmt.Sscanf(line, "rank %d of %d on node %d of %s <nil>", &rank, &size, &node, &id)
					require.NoError(t, err, line)
					require.Equal(t, 4, size)
					if job == "" {
						job = id
					}
					require.Equal(t, job, id)
					if len(args) > 3 {
						require.Equal(t, rank/2, node, line)
					} else {
						require.Equal(t, 0, node, line)
					}
					ranks[fmt.Sprint(rank)] = true
				}
				require.Len(t, ranks, 4, "%s", out)
			})
		}
	}
}

func TestAbortUnderHydra(t *testing.T) {
	for _, version := range []string{"1", "2"} {
		out, err := hydra(t, "abort", version, "-n", "4").CombinedOutput()
		require.Error(t, err, "%s", out)
		require.NotContains(t, string(out), "fence: <nil>")
		require.NotContains(t, string(out), "rank ?")
	}
}

func TestHydraVanishes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "result")
	c := hydra(t, "orphan", "1", "-n", "1")
	c.Env = append(c.Env, envResult+"="+file)
	_ = c.Run() // it fails
	deadline := time.Now().Add(hang)
	var result []byte
	for len(result) == 0 && time.Now().Before(deadline) {
		result, _ = os.ReadFile(file)
	}
	require.True(t, bytes.HasPrefix(result, []byte("true ")), "%s", result)
}

// TestInherited checks that a socket that this process has opened is not used as an inherited one.
func TestInherited(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	unix.CloseOnExec(pair[1])
	_, err = openInherited(pair[1])
	require.ErrorContains(t, err, "inherited")
	_, err = openInherited(1 << 20)
	require.ErrorContains(t, err, "inherited")

	c, err := openInherited(pair[0])
	require.NoError(t, err)
	_, err = c.Write([]byte("x"))
	require.NoError(t, err)
	one := make([]byte, 1)
	_, err = unix.Read(pair[1], one)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, unix.Close(pair[1]))

	var pipe [2]int
	require.NoError(t, unix.Pipe(pipe[:]))
	_, err = openInherited(pipe[0])
	require.ErrorContains(t, err, "not a socket")
	require.NoError(t, unix.Close(pipe[0]))
	require.NoError(t, unix.Close(pipe[1]))
}
