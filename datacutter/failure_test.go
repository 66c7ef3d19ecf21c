package datacutter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var errBoom = errors.New("boom")

// runHosts runs every host of a job separately, as processes would, and returns the errors by host.
func runHosts(ctx context.Context, t *testing.T, network Network, job Job) map[string]error {
	nodes, addrs := make(map[string]*Node), make(map[string]string)
	for _, h := range job.Layout.Hosts() {
		n, err := Listen(ctx, network)
		require.NoError(t, err)
		n.grace = patience
		nodes[h], addrs[h] = n, n.Addr()
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	errs := make(map[string]error)
	for h, n := range nodes {
		wg.Go(func() {
			_, err := n.Run(ctx, job, h, addrs)
			mu.Lock()
			defer mu.Unlock()
			errs[h] = err
		})
	}
	wg.Wait()
	return errs
}

// sendForever sends units until that fails.
func sendForever(out string) func(Instance) (Filter, error) {
	return always(func(_ context.Context, w *Work) error {
		for {
			if err := w.Out(out).Send([]byte("again")); err != nil {
				return err
			}
		}
	})
}

// A filter that fails ends the run on all hosts, with its reason.
func TestFailureEndsAllHosts(t *testing.T) {
	boom := always(func(_ context.Context, w *Work) error {
		_, err := w.In("a").Next()
		return errors.Join(err, errBoom)
	})
	for name, network := range networks(t) {
		for copies := 1; copies <= 3; copies += 2 {
			for _, policy := range []Policy{RoundRobin, DemandDriven} {
				t.Run(fmt.Sprintf("%s %d %v", name, copies, policy), func(t *testing.T) {
					g := chain(sendForever("a"), boom, new(bin).sink("b"))
					g.Streams[0].Policy = policy
					errs := runHosts(guard(t), t, network, Job{Group: g, Layout: Layout{
						{Filter: "read", Host: "x"}, {Filter: "pass", Host: "y", Copies: copies}, {Filter: "view", Host: "z"},
					}})
					var failed *FilterError
					require.ErrorAs(t, errs["y"], &failed)
					require.ErrorIs(t, errs["y"], errBoom)
					require.Equal(t, "pass", failed.Instance.Filter)
					require.ErrorContains(t, errs["y"], "] of group 0 on host y: work 0: boom")
					var remote *RemoteError
					require.ErrorAs(t, errs["z"], &remote)
					require.ErrorContains(t, errs["z"], "datacutter: view[0] of group 0 on host z: ")
					require.ErrorContains(t, errs["z"], "boom")
					require.ErrorAs(t, errs["x"], &failed)
					require.Equal(t, Instance{Filter: "read", Copies: 1, Host: "x"}, failed.Instance)
					var stream *StreamError
					require.ErrorAs(t, errs["x"], &stream)
					require.Equal(t, "a", stream.Stream)
					require.True(t, stream.To)
					require.Equal(t, "pass", stream.Peer.Filter)
					if name == "memory" { // a socket may lose the peer's last frame
						require.ErrorContains(t, errs["x"], "boom")
					}
				})
			}
		}
	}
}

// Run with all hosts in one process returns the first failure.
func TestRunReturnsTheCause(t *testing.T) {
	for name, network := range networks(t) {
		t.Run(name, func(t *testing.T) {
			boom := always(func(context.Context, *Work) error { return errBoom })
			_, err := Run(guard(t), network, Job{Group: chain(sendForever("a"), forward("a", "b"), boom), Layout: Spread(chain(nil, nil, nil), 2, "x", "y", "z", "v")})
			require.ErrorIs(t, err, errBoom)
			require.ErrorContains(t, err, "view[0] of group")
		})
	}
}

// A host that has finished still waits for the hosts downstream.
func TestFailureAfterTheProducerIsDone(t *testing.T) {
	late := always(func(_ context.Context, w *Work) error {
		for range w.In("b").Units() {
		}
		return errBoom
	})
	for name, network := range networks(t) {
		t.Run(name, func(t *testing.T) {
			g := chain(count(3, "a"), forward("a", "b"), late)
			for host, err := range runHosts(guard(t), t, network, Job{Group: g, Layout: Spread(g, 1, "x", "y", "z")}) {
				require.ErrorContains(t, err, "view[0] of group 0 on host z: work 0: boom", host)
			}
		})
	}
}

func TestNewFails(t *testing.T) {
	g := chain(count(3, "a"), func(Instance) (Filter, error) { return nil, errBoom }, new(bin).sink("b"))
	_, err := Run(guard(t), NewMemory(), Job{Group: g, Layout: Spread(g, 1, "x", "y", "z")})
	require.ErrorIs(t, err, errBoom)
	require.ErrorContains(t, err, "pass[0] of group 0 on host y: new: boom")
	g.Filters[1].New = func(Instance) (Filter, error) { return nil, nil }
	_, err = Run(guard(t), NewMemory(), Job{Group: g, Layout: Spread(g, 1, "x")})
	require.ErrorIs(t, err, ErrJob)
}

type closer struct {
	FilterFunc
	err    error
	closed *int
}

func (c closer) Close() error {
	*c.closed++
	return c.err
}

func TestFiltersAreClosed(t *testing.T) {
	for _, fails := range []error{nil, errBoom} {
		closed := 0
		pass := func(i Instance) (Filter, error) {
			f, err := forward("a", "b")(i)
			return closer{f.(FilterFunc), fails, &closed}, err
		}
		g := chain(count(3, "a"), pass, new(bin).sink("b"))
		_, err := Run(guard(t), NewMemory(), Job{Group: g, Layout: Spread(g, 1, "x"), Works: make([][]byte, 5)})
		require.ErrorIs(t, err, fails)
		require.Equal(t, 1, closed)
	}
}

// A canceled run ends wherever its filters wait, and leaks no goroutine (checked by goleak).
func TestCancel(t *testing.T) {
	stuck := errors.New("enough")
	for name, network := range networks(t) {
		for _, policy := range []Policy{RoundRobin, DemandDriven} {
			t.Run(name+" "+policy.String(), func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(guard(t))
				var once sync.Once
				deaf := always(func(ctx context.Context, w *Work) error { // receives one unit only
					_, err := w.In("b").Next()
					once.Do(func() { cancel(stuck) })
					<-ctx.Done()
					return errors.Join(err, context.Cause(ctx))
				})
				g := chain(sendForever("a"), forward("a", "b"), deaf)
				g.Streams[0].Policy = policy
				l := Spread(g, 2, "x", "y", "z", "v")
				l[1].Copies, l[2].Copies = 3, 2
				canceled := 0
				for host, err := range runHosts(ctx, t, network, Job{Group: g, Layout: l}) {
					require.Error(t, err, host) // of a host that its peer left before it noticed itself
					if errors.Is(err, stuck) {
						canceled++
					}
				}
				require.Positive(t, canceled)
			})
		}
	}
}

func TestUnitTooLong(t *testing.T) {
	long := always(func(_ context.Context, w *Work) error {
		if err := w.Out("a").Send(make([]byte, w.Out("a").UnitSize())); err != nil {
			return err
		}
		_ = w.Out("a").Send(make([]byte, w.Out("a").UnitSize()+1))
		return nil // the error is sticky
	})
	g := chain(long, forward("a", "b"), new(bin).sink("b"))
	_, err := Run(guard(t), NewMemory(), Job{Group: g, Layout: Spread(g, 1, "x", "y")})
	require.ErrorIs(t, err, ErrTooLong)
	require.ErrorContains(t, err, "unit is too long: stream a: 65 bytes, at most 64")
}

func TestNoSuchStream(t *testing.T) {
	g := chain(forward("c", "a"), forward("a", "b"), new(bin).sink("b"))
	_, err := Run(guard(t), NewMemory(), Job{Group: g, Layout: Spread(g, 1, "x")})
	require.ErrorIs(t, err, ErrJob)
	require.ErrorContains(t, err, `filter read has no input "c"`)
	g = chain(count(1, "b"), forward("a", "b"), new(bin).sink("b"))
	_, err = Run(guard(t), NewMemory(), Job{Group: g, Layout: Spread(g, 1, "x")})
	require.ErrorContains(t, err, `filter read has no output "b", only "a"`)
}

func TestJobsThatCannotRun(t *testing.T) {
	ok := func() Job {
		g := chain(count(1, "a"), forward("a", "b"), new(bin).sink("b"))
		return Job{Group: g, Layout: Spread(g, 1, "x", "y")}
	}
	_, err := Run(guard(t), NewMemory(), ok())
	require.NoError(t, err)
	for says, change := range map[string]func(*Job){
		"name is empty or not unique":             func(j *Job) { j.Group.Filters[1].Name = "read" },
		`filter "": name is empty`:                func(j *Job) { j.Group.Filters[0].Name = "" },
		"filter view has no New":                  func(j *Job) { j.Group.Filters[2].New = nil },
		`stream "a": name is empty or not unique`: func(j *Job) { j.Group.Streams[1].Name = "a" },
		`has no filter "sight"`:                   func(j *Job) { j.Group.Streams[1].To = "sight" },
		"UnitSize is 0":                           func(j *Job) { j.Group.Streams[1].UnitSize = 0 },
		"UnitSize is 16777217":                    func(j *Job) { j.Group.Streams[1].UnitSize = MaxUnitSize + 1 },
		"unknown policy":                          func(j *Job) { j.Group.Streams[0].Policy = 3 },
		"invalid Window -1":                       func(j *Job) { j.Group.Streams[0].Window = -1 },
		"form a cycle":                            func(j *Job) { j.Group.Streams[1].To = "read" },
		"layout is empty":                         func(j *Job) { j.Layout = nil },
		"Host is empty":                           func(j *Job) { j.Layout[1].Host = "" },
		`the group has no filter "reed"`:          func(j *Job) { j.Layout[0].Filter = "reed" },
		"no placement for filter read":            func(j *Job) { j.Layout = j.Layout[1:] },
		"no placement for filter pass of gro":     func(j *Job) { j.Layout[1].Group = 1 },
		"-1 copies":                               func(j *Job) { j.Layout[1].Copies = -1 },
		"at most 65536 instances":                 func(j *Job) { j.Layout[1].Copies = 1 << 16 },
		"at most 1048576: use fewer":              func(j *Job) { j.Layout[0].Copies, j.Layout[1].Copies = 2000, 2000 },
		"group 65536: groups are numbered":        func(j *Job) { j.Layout[1].Group = 1 << 16 },
		"group -1":                                func(j *Job) { j.Layout[1].Group = -1 },
	} {
		job := ok()
		change(&job)
		_, err := Run(guard(t), NewMemory(), job)
		require.ErrorIs(t, err, ErrJob, says)
		require.ErrorContains(t, err, says)
	}
}

func TestNodeMisuse(t *testing.T) {
	g := chain(count(1, "a"), forward("a", "b"), new(bin).sink("b"))
	job := Job{Group: g, Layout: Spread(g, 1, "x", "y")}
	for says, try := range map[string]func(n *Node) error{
		`places nothing on host "w"`: func(n *Node) error { return errorOf(n.Run(guard(t), job, "w", nil)) },
		"host y has no address":      func(n *Node) error { return errorOf(n.Run(guard(t), job, "x", map[string]string{"x": "1"})) },
		"a Node runs once": func(n *Node) error {
			job := Job{Group: g, Layout: Spread(g, 1, "x")}
			require.NoError(t, errorOf(n.Run(guard(t), job, "x", nil)))
			return errorOf(n.Run(guard(t), job, "x", nil))
		},
	} {
		n, err := Listen(guard(t), NewMemory())
		require.NoError(t, err)
		err = try(n)
		require.ErrorIs(t, err, ErrJob)
		require.ErrorContains(t, err, says)
	}
	n, err := Listen(guard(t), NewMemory())
	require.NoError(t, err)
	require.NoError(t, n.Close())
	_, err = Listen(guard(t), NewTCP("127.0.0.1:99999"))
	require.ErrorContains(t, err, "datacutter: listen: ")
	require.True(t, strings.HasPrefix((&FilterError{Err: errBoom}).Error(), "datacutter: "))
}

func errorOf(_ Report, err error) error { return err }
