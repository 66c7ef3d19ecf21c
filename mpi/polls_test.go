package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// poll tests a request repeatedly.
func poll(r *mpi.Request, err error) error {
	for done := false; !done && err == nil; {
		_, done, err = r.Test()
	}
	return err
}

// requirePolls requires that the report of a job that hangs in f has a line for each rank that
// matches wants. If a rank was not scheduled for a second, the report rightly says that it is in no
// call, or did not reply. Only then the job runs again, up to five times.
func requirePolls(t *testing.T, o mpi.Options, f func(w mpi.World) error, wants []string) {
	t.Helper()
	for attempts := 5; ; attempts-- {
		text := reportOfHang(t, len(wants), o, f)
		rank := slices.IndexFunc(wants, func(want string) bool { return !regexp.MustCompile(want).MatchString(text) })
		if rank < 0 {
			return
		}
		starved := regexp.MustCompile(fmt.Sprintf(`(?m)^ *rank %d: (in no call of MPI|no reply)`, rank)).MatchString(text)
		require.True(t, starved && attempts > 0, "no line matches %s:\n%s", wants[rank], text)
	}
}

// TestReportPolls has ranks poll for messages of one another.
func TestReportPolls(t *testing.T) {
	wants := []string{
		`rank 0: polls Recv\(source 1, tag 5\) at mpi/polls_test.go:\d+, which waits for rank 1`,
		`rank 1: polls Iprobe\(source 0, tag 7\) at mpi/polls_test.go:\d+, which waits for rank 0`,
		`rank 2: polls Ssend\(16 bytes, dest 0, tag 3\) at mpi/polls_test.go:\d+, which waits for rank 0 \(receive not posted`,
		`rank 3: in no call of MPI`,
	}
	for name, o := range nets {
		t.Run(name, func(t *testing.T) {
			o.Watchdog = soon
			requirePolls(t, o, pollInARing, wants)
		})
	}
}

// pollInARing has ranks 0 to 2 poll for one another, and rank 3 compute.
func pollInARing(w mpi.World) error {
	x := make([]int64, 2)
	switch w.Rank() {
	case 0:
		return poll(w.Irecv(mpi.Of(x), 1, 5))
	case 1:
		for {
			if _, ok, err := w.Iprobe(0, 7); ok || err != nil {
				return err
			}
		}
	case 2:
		return poll(w.Issend(mpi.Of(x), 0, 3))
	}
	return nil
}

// TestReportPolledCalls polls several requests, nonblocking and persistent calls, and windows.
func TestReportPolledCalls(t *testing.T) {
	calls := func(w mpi.World) error {
		win, _, err := mpi.WinAllocate[int64](w.Comm, 1)
		if err != nil {
			return err
		}
		x := make([]byte, 1)
		var rs []*mpi.Request
		for tag := 3; tag < 6; tag++ {
			r, err := w.Irecv(mpi.Of(x), (w.Rank()+tag-2)%w.Size(), tag)
			if err != nil {
				return err
			}
			rs = append(rs, r)
		}
		done := false
		switch w.Rank() {
		case 0:
			for !done && err == nil {
				_, _, done, err = mpi.TestAny(rs...)
			}
		case 1:
			for !done && err == nil {
				_, done, err = mpi.TestAll(rs...)
			}
		case 2:
			return poll(w.Ibcast(mpi.Of(x), 3))
		case 3:
			err = win.Post(win.Group())
			for !done && err == nil {
				done, err = win.Test()
			}
		case 4:
			r, err := w.RecvInit(mpi.Of(x), 0, 9)
			if err == nil {
				err = r.Start()
			}
			for !done && err == nil { // among others
				for _, r := range append(rs, r) {
					if _, done, err = r.Test(); done || err != nil {
						break
					}
				}
			}
		}
		return err
	}
	wants := []string{
		`rank 0: polls TestAny\(Recv\(source 1, tag 3\) and 2 more\) at mpi/polls_test.go:\d+, which waits for any of ranks 1 to 3`,
		`rank 1: polls TestAll\(Recv\(source 2, tag 3\) and 2 more\) at mpi/polls_test.go:\d+, which waits for ranks 2 to 4`,
		`rank 2: polls ibcast #\d+ of 1 uint8 with root 3 at mpi/polls_test.go:\d+, which waits for rank \d`,
		`rank 3: polls Test on world.win at mpi/polls_test.go:\d+, which waits for ranks 0 to 4`,
		`rank 4: polls Recv\(source \d, tag \d\) and 3 more at mpi/polls_test.go:\d+, which waits for any of ranks 0 to 2`,
	}
	requirePolls(t, mpi.Options{Watchdog: soon}, calls, wants)
}

// waitReport repeats World.Report until says accepts the report.
func waitReport(ctx context.Context, w mpi.World, says func(text string) bool) error {
	before := ""
	for {
		text, err := w.Report(ctx)
		if err != nil {
			return fmt.Errorf("%w, before: %s", err, before)
		}
		if says(text) {
			return nil
		}
		before = text
	}
}

// reply sends one reply to rank 0.
func reply(w mpi.World) error {
	_, err := w.Recv(mpi.Of([]byte{0}), 0, 1)
	if err == nil {
		err = w.Send(mpi.Of([]byte{0}), 0, 2)
	}
	return err
}

// TestPollsEnd checks that a polled condition is reported, and no longer after the polling
// ends.
func TestPollsEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job(t, 2, mpi.Options{}, func(w mpi.World) error {
		if w.Rank() == 1 {
			return reply(w)
		}
		in, err := w.Irecv(mpi.Of([]byte{0}), 1, 2)
		require.NoError(t, err)
		const polls = "rank 0: polls Recv(source 1, tag 2) at mpi/polls_test.go:"
		stop, over := make(chan struct{}), make(chan error)
		go func() {
			var err error
			for done := false; !done && err == nil; {
				_, done, err = in.Test()
				select {
				case <-stop:
					done = true
				default:
				}
			}
			over <- err
		}()
		require.NoError(t, waitReport(ctx, w, func(text string) bool { return strings.Contains(text, polls) }))
		close(stop)
		require.NoError(t, <-over)
		require.NoError(t, waitReport(ctx, w, func(text string) bool { return !strings.Contains(text, "rank 0: polls") }))
		require.NoError(t, w.Send(mpi.Of([]byte{0}), 1, 1))
		_, err = in.Wait()
		return err
	})
}

// TestPollsDeadlock has ranks only poll for messages of one another. The activity of a rank is an
// estimate that may need several samples.
func TestPollsDeadlock(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	over := make(chan struct{})
	job(t, 3, mpi.Options{}, func(w mpi.World) error {
		x := []byte{0}
		switch w.Rank() {
		case 0:
			in, err := w.Irecv(mpi.Of(x), 1, 5)
			for ; err == nil; _, _, err = in.Test() {
				select {
				case <-over:
					in.Cancel()
					return nil
				default:
				}
			}
			return err
		case 1:
			for {
				if _, _, err := w.Iprobe(0, 7); err != nil {
					return err
				}
				select {
				case <-over:
					return nil
				default:
				}
			}
		}
		defer close(over)
		wants := regexp.MustCompile(`Deadlock: ranks 0 and 1 wait for one another:
    rank 0 polls Recv\(source 1, tag 5\) at mpi/polls_test.go:\d+ for rank 1, for [\d.]+ s
    rank 1 polls Iprobe\(source 0, tag 7\) at mpi/polls_test.go:\d+ for rank 0, for [\d.]+ s
    It ends only if another goroutine of these ranks makes a call, or stops polling.
`)
		return waitReport(ctx, w, wants.MatchString)
	})
}

// compute computes for a while.
func compute() {
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
	}
}

// TestPollsOfComputingRank checks that a rank that polls and computes is reported, but not as
// blocked.
func TestPollsOfComputingRank(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job(t, 2, mpi.Options{Report: func(text string) { t.Error(text) }}, func(w mpi.World) error {
		w.SetAlarm(500 * time.Millisecond)
		if w.Rank() == 1 {
			return reply(w)
		}
		in, err := w.Irecv(mpi.Of([]byte{0}), 1, 2)
		require.NoError(t, err)
		seen := make(chan error)
		go func() {
			seen <- waitReport(ctx, w, func(text string) bool {
				require.NotContains(t, text, "Deadlock")
				return regexp.MustCompile(`rank 0: polls Recv\(source 1, tag 2\) .*computes in between\), for [2-9]`).MatchString(text)
			})
		}()
		for over := false; !over; {
			if _, done, err := in.Test(); done || err != nil {
				return fmt.Errorf("it is there too early: %w", err)
			}
			compute()
			select {
			case err := <-seen:
				require.NoError(t, err)
				over = true
			default:
			}
		}
		require.NoError(t, w.Send(mpi.Of([]byte{0}), 1, 1))
		return poll(in, nil)
	})
}

// TestPollsOfLostRank checks that a lost rank ends the polls that depend on it.
func TestPollsOfLostRank(t *testing.T) {
	const n = 8
	require.NoError(t, loseLast(n, mpi.Options{Algorithms: inTurns.Algorithms}, func(w mpi.World) (func(<-chan struct{}) error, error) {
		win, _, err := mpi.WinAllocate[int64](w.Comm, 1)
		if err != nil {
			return nil, err
		}
		some, err := w.Dup()
		return func(<-chan struct{}) error {
			if err := pollLost(w, win, some, n-1); !errors.Is(err, mpi.ErrLost) {
				return fmt.Errorf("the call returned %w", err)
			}
			return nil
		}, err
	}))
}

// pollLost has each rank poll in a different call for a rank that is about to fail.
func pollLost(w mpi.World, win *mpi.Win, some *mpi.Comm, last int) (err error) {
	x := make([]byte, 100_000)
	switch w.Rank() {
	case 0:
		return poll(w.Irecv(mpi.Of(x), last, 1))
	case 1:
		for ok := false; !ok && err == nil; {
			_, _, ok, err = w.Improbe(last, 2)
		}
	case 2:
		return poll(w.Issend(mpi.Of(x), last, 3))
	case 3:
		a, _ := w.Irecv(mpi.Of(x[:1]), last, 1)
		b, err := w.Irecv(mpi.Of(x[1:]), mpi.AnySource, 9)
		for done := false; !done && err == nil; {
			_, done, err = mpi.TestAll(a, b)
		}
		return err
	case 4:
		a, _ := w.Irecv(mpi.Of(x[:1]), 1, 1)
		b, err := w.Irecv(mpi.Of(x[1:]), last, 9)
		for done := false; !done && err == nil; {
			_, _, done, err = mpi.TestAny(a, b)
		}
		return err
	case 5:
		return poll(some.Ialltoall(mpi.Of(make([]byte, 8)), mpi.Of(make([]byte, 8))))
	case 6:
		if err = win.Post(win.Group()); err != nil {
			return err
		}
		for done := false; !done && err == nil; {
			done, err = win.Test()
		}
		if err == nil {
			return errors.New("it is over")
		}
		if !errors.Is(win.Sync(), mpi.ErrLost) {
			return errors.New("Sync has not seen it")
		}
	}
	return err
}
