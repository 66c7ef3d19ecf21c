package rankproc_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/internal/rankproc"
	"github.com/softrnic/softrnic/internal/pmi/server"
	"github.com/softrnic/softrnic/mpi/pmi"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "rank" {
		os.Exit(runRank())
	}
	goleak.VerifyTestMain(m)
}

// runRank joins the job, copies its input and returns the exit status.
func runRank() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := pmi.Open(ctx)
	if err == nil {
		err = m.Fence(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	input, _ := io.ReadAll(os.Stdin)
	fmt.Printf("%d of %d on %s: %s", m.Rank(), m.Size(), os.Getenv("MPI_LOCALRANKID"), input)
	return 0
}

// TestRanks starts two ranks that join a job, by an inherited socket and by a port.
func TestRanks(t *testing.T) {
	t.Setenv("PMI_RANK", "7") // of another job
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, inherit := range []bool{true, false} {
		if inherit && !server.CanPair {
			continue
		}
		job, err := server.New(server.Options{Size: 2, ID: "job"})
		require.NoError(t, err)
		var port *server.Port
		if !inherit {
			port, err = server.Listen(server.PortOptions{Address: "127.0.0.1:0", Size: 2, Secret: "s3cret", OnRank: func(rank int, c net.Conn) { go func() { _ = job.Serve(rank, c) }() }})
			require.NoError(t, err)
		}
		var ranks [2]*rankproc.Process
		for i := range ranks {
			in, stdin, err := os.Pipe()
			require.NoError(t, err)
			ranks[i], err = rankproc.Start(rankproc.Spec{
				Args: []string{exe, "rank"}, Environ: rankproc.RemovePMI(os.Environ()), Stdin: in,
				Rank: &rankproc.Rank{Rank: i, Size: 2, Local: i, Count: 2, Port: port},
			})
			require.NoError(t, err)
			if c := ranks[i].PMI; c != nil {
				go func() { _ = job.Serve(i, c) }()
			}
			fmt.Fprint(stdin, "hello")
			require.NoError(t, stdin.Close())
		}
		for i, p := range ranks {
			said, err := io.ReadAll(p.Stderr)
			require.NoError(t, err)
			require.Empty(t, string(said))
			out, err := io.ReadAll(p.Stdout)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%d of 2 on %[1]d: hello", i), string(out))
			require.NoError(t, p.Cmd.Wait())
			require.NoError(t, p.Stdout.Close())
			require.NoError(t, p.Stderr.Close())
		}
		if port != nil {
			require.NoError(t, port.Close())
		}
	}
}

// TestFailures start nothing and leave no file open.
func TestFailures(t *testing.T) {
	for text, s := range map[string]rankproc.Spec{
		"no program":     {},
		"does not exist": {Args: []string{"ls"}, Dir: "/nowhere"},
		"not found":      {Args: []string{"no-such-program-here"}, Rank: &rankproc.Rank{Size: 1}},
	} {
		_, err := rankproc.Start(s)
		require.ErrorContains(t, err, text)
	}
}
