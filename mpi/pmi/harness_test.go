package pmi

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/internal/pmi/server"
)

// hang is the time after which a test has failed.
const hang = time.Minute

// envRole is the variable that makes this program a rank of a job that a test has started.
const envRole = "SOFTRNIC_PMI_TEST"

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		os.Exit(playRole(role))
	}
	goleak.VerifyTestMain(m)
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	t.Cleanup(cancel)
	return ctx
}

// testServed creates a job on package server and a manager for each of its ranks, on in-memory
// connections.
func testServed(t testing.TB, o server.Options, dialects ...protocol) (*server.Job, []Manager) {
	job, err := server.New(o)
	require.NoError(t, err)
	list := make([]Manager, o.Size)
	var all sync.WaitGroup
	for i := range list {
		ours, theirs := net.Pipe()
		all.Go(func() { _ = job.Serve(i, theirs) })
		t.Cleanup(func() { ours.Close() })
		c := &client{protocol: dialects[i%len(dialects)], rank: i, size: o.Size, conn: newConn(ours, "test")}
		list[i], err = c.joinManager(soon(t))
		require.NoError(t, err)
	}
	t.Cleanup(all.Wait) // runs before the cleanup above, after all others: connections are closed by tests or below
	t.Cleanup(func() {
		for _, m := range list {
			m.(*client).Close()
		}
	})
	return job, list
}

// kinds are the implementations of the managers of a job.
var kinds = map[string]func(t testing.TB, n int) []Manager{
	"local": func(_ testing.TB, n int) []Manager { return NewLocal(n) },
	"PMI-1": func(t testing.TB, n int) []Manager {
		_, list := testServed(t, server.Options{Size: n, ID: "kvs_1"}, &protocolV1{})
		return list
	},
	"PMI-2": func(t testing.TB, n int) []Manager {
		_, list := testServed(t, server.Options{Size: n, ID: "kvs_2"}, protocolV2{})
		return list
	},
	"both": func(t testing.TB, n int) []Manager {
		_, list := testServed(t, server.Options{Size: n, ID: "kvs_3"}, &protocolV1{}, protocolV2{})
		return list
	},
}

// failer is a *testing.T or a *rapid.T.
type failer interface {
	require.TestingT
	Helper()
	Fatal(...any)
}

// everyRank runs f for each rank concurrently.
func everyRank(t failer, list []Manager, do func(m Manager) error) {
	t.Helper()
	errs := make(chan error, len(list))
	for _, m := range list {
		go func() { errs <- do(m) }()
	}
	for range list {
		select {
		case err := <-errs:
			require.NoError(t, err)
		case <-time.After(hang):
			t.Fatal("a rank does not end")
		}
	}
}

// exchange has each rank put its value and get those of all, as most programs do.
func exchange(ctx context.Context, m Manager, round int, value func(rank int) string) error {
	key := func(rank int) string { return fmt.Sprintf("round-%d/rank-%d", round, rank) }
	if err := m.Put(key(m.Rank()), value(m.Rank())); err != nil {
		return err
	}
	if err := m.Fence(ctx); err != nil {
		return err
	}
	for rank := range m.Size() {
		got, err := m.Get(ctx, key(rank))
		if err != nil {
			return err
		}
		if want := value(rank); got != want {
			return fmt.Errorf("rank %d has of rank %d %.40q, want %.40q", m.Rank(), rank, got, want)
		}
	}
	return nil
}
