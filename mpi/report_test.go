package mpi_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// soon is the alarm time of these tests: longer than any wait without a deadlock, also with a
// bad network.
var soon = func() time.Duration {
	if os.Getenv("SOFTRNIC_IMPAIR") != "" {
		return 3 * time.Second
	}
	return time.Second
}()

// reportOfHang runs f, which does not return, on n ranks until one of them has reported, and
// returns the report. Then it fails all ranks.
func reportOfHang(t *testing.T, n int, o mpi.Options, f func(w mpi.World) error) string {
	t.Helper()
	reports := make(chan string, n)
	o.Report = func(text string) {
		if !strings.Contains(text, mpi.LostReason) { // of a rank that waits for replies when the others fail
			reports <- text
		}
	}
	var all, ready, calm sync.WaitGroup
	ready.Add(n)
	calm.Add(n)
	over := make(chan struct{})
	for i, m := range pmi.NewLocal(n) {
		all.Go(func() {
			o := o
			o.Manager = m
			w, err := mpi.Init(open, o)
			ready.Done()
			if err != nil {
				calm.Done()
				t.Errorf("rank %d: %v", i, err)
				return
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if w.Barrier() == nil {
					_ = f(w) // its messages may match another call
				}
			}()
			<-over
			ready.Wait()
			w.SetAlarm(time.Hour) // Finalize may wait as well
			calm.Done()
			calm.Wait()
			w.Lose()
			<-ended
			w.Vanish()
		})
	}
	text := ""
	select {
	case text = <-reports:
	case <-time.After(time.Minute):
		t.Error("nobody reports")
	}
	close(over)
	all.Wait()
	t.Log(text)
	if len(reports) > 0 {
		t.Fatal("one report is enough: ", <-reports)
	}
	return text
}

// nets are the options for each transport.
var nets = map[string]mpi.Options{"rdma": {}, "ud": {Net: mpi.UD}, "tcp": {Net: mpi.TCP}}

// TestReportDeadlock has two ranks wait for messages of one another, and a third one wait for one
// of them.
func TestReportDeadlock(t *testing.T) {
	for name, o := range nets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Watchdog = soon
			text := reportOfHang(t, 4, o, func(w mpi.World) error {
				x := make([]int64, 2)
				switch w.Rank() {
				case 0:
					if err := w.Send(mpi.Of(x), 1, 8); err != nil {
						return err
					}
					_, err := w.Recv(mpi.Of(x), 1, 5)
					return err
				case 1:
					_, err := w.Recv(mpi.Of(x), 0, 7)
					return err
				case 2:
					return w.Ssend(mpi.Of(x), 0, 3)
				}
				return nil // it computes
			})
			for _, want := range []string{
				`Deadlock: ranks 0 and 1 wait for one another:
    rank 0 waits in Recv\(source 1, tag 5\) at mpi/report_test.go:\d+ for rank 1, for [\d.]+ s
    rank 1 waits in Recv\(source 0, tag 7\) at mpi/report_test.go:\d+ for rank 0, for [\d.]+ s
    None of these messages has been sent.
    rank 2 cannot continue without them.`,
				`rank 2: Ssend\(16 bytes, dest 0, tag 3\) at mpi/report_test.go:\d+ waits for rank 0 \(receive not posted\)`,
				`rank 3: in no call of MPI after barrier #1, for`,
				`Messages that have come and have no receive:
    rank 0: from 2, tag 3, 16 bytes
    rank 1: from 0, tag 8, 16 bytes`,
				`Receives that wait for their message:
    rank 0: from 1, tag 5, 16 bytes
    rank 1: from 0, tag 7, 16 bytes`,
				`Sends that wait:
    rank 2: to 0, tag 3, 16 bytes`,
			} {
				require.Regexp(t, regexp.MustCompile(want), text)
			}
		})
	}
}

// TestNoReportOfMismatch checks that mismatched calls end with errors, with and without
// Options.Check.
func TestNoReportOfMismatch(t *testing.T) {
	job(t, 4, mpi.Options{Watchdog: soon, NoShared: true, Report: func(text string) { t.Error(text) }}, func(w mpi.World) error {
		for range 13 {
			require.NoError(t, w.Barrier())
		}
		var err error
		if w.Rank() == 3 {
			err = w.Barrier()
		} else {
			err = w.Allreduce(mpi.InPlace, mpi.Of(make([]float64, 8)), mpi.Sum)
		}
		require.ErrorIs(t, err, mpi.ErrMismatch)
		require.ErrorContains(t, err, "in call #14 rank")
		require.ErrorContains(t, err, "allreduce with count 8, float64 elements, operation sum")
		return nil
	})
}

// TestReportLocks has two ranks wait for locks of a window that the other one holds.
func TestReportLocks(t *testing.T) {
	text := reportOfHang(t, 2, mpi.Options{Watchdog: soon}, func(w mpi.World) error {
		win, _, err := mpi.WinAllocate[int64](w.Comm, 1)
		if err == nil {
			err = win.Lock(mpi.LockExclusive, w.Rank())
		}
		if err == nil {
			err = w.Barrier()
		}
		if err == nil {
			err = win.Lock(mpi.LockExclusive, 1-w.Rank())
		}
		return err
	})
	for rank := range 2 {
		require.Regexp(t, fmt.Sprintf(`rank %d: Lock\(target %d\) on world.win .*waits for`, rank, 1-rank), text)
	}
}

// TestReportCalls waits in nonblocking and persistent calls, on other communicators and
// windows, and in probes.
func TestReportCalls(t *testing.T) {
	text := reportOfHang(t, 3, mpi.Options{Watchdog: soon}, func(w mpi.World) error {
		row, err := w.Split(w.Rank()/2, -w.Rank()) // 1 and 0; 2
		if err != nil {
			return err
		}
		win, _, err := mpi.WinAllocate[int64](w.Comm, 1)
		if err != nil {
			return err
		}
		switch w.Rank() {
		case 0:
			go func() { _, _ = row.Probe(0, mpi.AnyTag) }()
			return win.Fence()
		case 1:
			r, err := row.Ibcast(mpi.Of([]int32{1, 2}), 1)
			if err == nil {
				_, err = r.Wait()
			}
			return err
		}
		in, err := w.Irecv(mpi.Of([]byte{0}), mpi.AnySource, 4)
		if err != nil {
			return err
		}
		also, err := w.Irecv(mpi.Of([]byte{0}), 1, 5)
		if err == nil {
			_, _, err = mpi.WaitAny(in, also)
		}
		return err
	})
	for _, want := range []string{
		`rank 0: Probe\(source 0, rank 1 of the job, tag any\) on world.split\(0\) at mpi/report_test.go:\d+ waits for rank 1`,
		`rank 0: the barrier of Fence or Free on world.win at mpi/report_test.go:\d+ waits for rank 2`,
		`rank 1: ibcast #\d+ of 2 int32 with root 1 on world.split\(0\) waits for rank 0`,
		`rank 2: WaitAny\(Recv\(source any, tag 4\) and 1 more\) at mpi/report_test.go:\d+ waits for any of ranks 0 to 2`,
	} {
		require.Regexp(t, want, text)
	}
}

// TestReportAlone has a single rank wait for itself.
func TestReportAlone(t *testing.T) {
	reports := make(chan string, 1)
	w, err := mpi.Init(open, mpi.Options{Watchdog: soon, Report: func(text string) { reports <- text }})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		require.Regexp(t, `Deadlock: rank 0 waits for itself:\s+rank 0 waits in Recv\(source 0, tag 1\)`, <-reports)
		cancel()
	}()
	_, err = w.RecvContext(ctx, mpi.Of([]byte{0}), 0, 1)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, w.Finalize())
}

// TestReportAnySource has two ranks wait for any source.
func TestReportAnySource(t *testing.T) {
	text := reportOfHang(t, 2, mpi.Options{Watchdog: soon}, func(w mpi.World) error {
		_, err := w.Recv(mpi.Of([]byte{0}), mpi.AnySource, w.Rank()+1)
		return err
	})
	require.Regexp(t, `Deadlock: ranks 0 and 1 wait for one another:
    rank 0 waits in Recv\(source any, tag 1\) at mpi/report_test.go:\d+ for any of ranks 0 and 1, for \S+ s
    rank 1 waits in Recv\(source any, tag 2\) at mpi/report_test.go:\d+ for any of ranks 0 and 1, for \S+ s
    None of those that rank 0 waits for sends, because all of them wait: rank 0 in this call; rank 1 in Recv\(source any, tag 2\) at mpi/report_test.go:\d+.
    None of those that rank 1 waits for sends, because all of them wait: rank 0 in Recv\(source any, tag 1\) at mpi/report_test.go:\d+; rank 1 in this call.
    None of these messages has been sent.
`, text)
}

// TestReportLeftOff checks that messages that are not listed are counted as messages, and receives
// as receives.
func TestReportLeftOff(t *testing.T) {
	const listed, messages, receives = deadlock.MaxListed, 30, 7
	w := aloneWorld(t)
	b, err := w.Dup()
	require.NoError(t, err)
	var rs []*mpi.Request
	for tag := range listed + messages {
		r, err := w.Ibsend(mpi.Of([]byte{1}), 0, tag)
		require.NoError(t, err)
		rs = append(rs, r)
	}
	for tag := range listed + receives {
		r, err := b.Irecv(mpi.Of([]byte{1}), 0, tag)
		require.NoError(t, err)
		rs = append(rs, r)
	}
	text, err := w.Report(t.Context())
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(`(?s)have no receive:\n(    rank 0: [^\n]*\n){%d}    and %d more of these\nReceives that wait for their message:\n(    rank 0: [^\n]*\n){%d}    and %d more of these\n`,
		listed, messages, listed, receives), text)
	for tag := range listed + messages {
		_, err := w.Recv(mpi.Of([]byte{1}), 0, tag)
		require.NoError(t, err)
	}
	for tag := range listed + receives {
		require.NoError(t, b.Send(mpi.Of([]byte{1}), 0, tag))
	}
	_, err = mpi.WaitAll(rs...)
	require.NoError(t, err)
	require.NoError(t, w.Finalize())
}

// TestReportOnlyCertain checks that the default watchdog reports deadlocks only, not a wait
// for a rank that computes.
func TestReportOnlyCertain(t *testing.T) {
	job(t, 2, mpi.Options{Report: func(text string) { t.Error(text) }}, func(w mpi.World) error {
		w.SetAlarm(50 * time.Millisecond)
		if w.Rank() == 0 {
			_, err := w.Recv(mpi.Of([]byte{0}), 1, 1)
			return err
		}
		for range 3 { // it computes, and gets queries meanwhile
			w.Raise()
			text, err := w.Report(t.Context())
			require.NoError(t, err)
			require.Regexp(t, `rank 0: Recv\(source 1, tag 1\) at mpi/report_test.go:\d+ waits for rank 1`, text)
			require.NotContains(t, text, "Deadlock")
		}
		return w.Send(mpi.Of([]byte{1}), 0, 1)
	})
}

// TestReportWhileOthersWork requests a report while the other ranks compute.
func TestReportWhileOthersWork(t *testing.T) {
	for name, o := range nets {
		t.Run(name, func(t *testing.T) {
			job(t, 3, o, func(w mpi.World) error {
				for i := range 6 {
					if w.Rank() == i%3 {
						text, err := w.Report(t.Context())
						require.NoError(t, err)
						require.NotContains(t, text, "no reply")
						require.NotContains(t, text, "Deadlock")
					}
					require.NoError(t, w.Allreduce(mpi.Of([]int32{1}), mpi.Of([]int32{0}), mpi.Sum))
				}
				return nil
			})
		})
	}
}

// TestHangTimes checks the default times of a detector, and that the report names a rank that
// does not reply in time.
func TestHangTimes(t *testing.T) {
	every, alarm, patience := mpi.DetectorTimes(mpi.Options{})
	require.Equal(t, []time.Duration{time.Second / 2, time.Minute, 3 * time.Second}, []time.Duration{every, alarm, patience})
	every, alarm, _ = mpi.DetectorTimes(mpi.Options{Watchdog: time.Second})
	require.Equal(t, []time.Duration{time.Second / 4, time.Second}, []time.Duration{every, alarm}, "four looks in the time of the alarm")

	const silence = 50 * time.Millisecond
	job(t, 2, mpi.Options{}, func(w mpi.World) error {
		if w.Rank() == 1 {
			w.StopDetector()
		}
		require.NoError(t, w.Barrier())
		if w.Rank() == 0 {
			w.SetPatience(silence)
			begin := time.Now()
			text, err := w.Report(t.Context())
			took := time.Since(begin)
			require.NoError(t, err)
			require.Contains(t, text, "rank 1: no reply")
			require.GreaterOrEqual(t, took, silence)
			require.Less(t, took, patience)
		}
		return w.Barrier()
	})
}
