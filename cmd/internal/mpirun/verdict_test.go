package mpirun

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
	"github.com/softrnic/softrnic/internal/pmi/server"
)

// runningJob returns the verdict of a running job of 8 ranks on two hosts.
func runningJob() *verdict {
	v := newVerdict([]string{"node0", "node0", "node0", "node1", "node1", "node1", "node1", "node1"})
	for rank := range v.ranks {
		v.rankStarted(rank, frame.Process{PID: 4708 + rank})
	}
	return v
}

func TestFailureTexts(t *testing.T) {
	status := func(n int) frame.Exit { return frame.Exit{Status: n} }
	for want, c := range map[string]struct {
		status int
		happen func(v *verdict)
	}{
		"rank 3 on node1 (pid 4711) exited with status 2; the other 7 ranks were ended": {2, func(v *verdict) {
			v.rankExited(3, status(2), false, false)
			v.rankExited(4, status(9), false, false) // ended by the launcher
		}},
		"rank 3 on node1 (pid 4711) exited with status 2; 5 ranks that still ran were ended": {2, func(v *verdict) {
			v.rankExited(0, status(0), true, true)
			v.rankExited(1, status(0), false, false)
			v.rankExited(3, status(2), true, false)
		}},
		"rank 4 on node1 (pid 4712) was ended by signal 9 (killed); 6 ranks that still ran were ended": {137, func(v *verdict) {
			v.multipleHosts = true
			v.rankExited(0, status(1), true, false) // failed because rank 4 was lost
			v.rankExited(4, frame.Exit{Signal: 9, Name: "killed"}, true, false)
			v.rankExited(5, frame.Exit{Signal: 15, Name: "terminated"}, true, false)
		}},
		"node1 was lost with ranks 3-7: no reply; 1 rank that still ran was ended": {1, func(v *verdict) {
			v.multipleHosts = true
			v.rankExited(0, status(1), true, false)
			v.rankExited(2, status(7), true, false)
			v.hostLost("node1", true, "no reply")
		}},
		"rank 0 on node0 (pid 4708) exited with status 3; the other 7 ranks were ended": {3, func(v *verdict) {
			v.multipleHosts = true
			v.rankExited(0, status(3), true, false)
			v.pending = false // the wait for other failures has ended
			v.rankExited(4, frame.Exit{Signal: 15, Name: "terminated"}, true, false)
		}},
		"rank 0 on node0 (pid 4708) was ended by signal 11 (segmentation fault, core dumped); the other 7 ranks were ended": {139, func(v *verdict) {
			v.rankExited(0, frame.Exit{Signal: 11, Name: "segmentation fault", Core: true}, true, false)
		}},
		"rank 7 on node1 (pid 4715) exited with status 0 in the middle of the job, without MPI_Finalize; the other 7 ranks were ended": {1, func(v *verdict) {
			v.rankExited(7, status(0), true, false)
		}},
		"rank 1 on node0 (pid 4709) aborted the job with code 7: no memory; the other 7 ranks were ended": {7, func(v *verdict) {
			v.jobAborted(1, 7, "no memory")
		}},
		"rank 1 on node0 (pid 4709) aborted the job with code 256; the other 7 ranks were ended": {1, func(v *verdict) {
			v.jobAborted(1, 256, "")
		}},
		"node1 was lost with ranks 3-7: agent has ended; 3 ranks that still ran were ended": {1, func(v *verdict) {
			v.hostLost("node1", true, "agent has ended")
		}},
		"node1 cannot be reached, where ranks 3-7 should run: no ssh": {1, func(v *verdict) {
			v.hostLost("node1", false, "no ssh")
		}},
		"ranks 0, 2 and 4-6 wait at the fence for rank 1, which has ended or finalized; the other 7 ranks were ended": {1, func(v *verdict) {
			v.rankExited(1, status(0), false, false)
			v.ranksStuck([]int{0, 2, 4, 5, 6}, []int{1})
		}},
		"rank 0 waits at the fence for ranks 1 and 2, which have ended or finalized; 8 ranks that still ran were ended": {1, func(v *verdict) {
			v.ranksStuck([]int{0}, []int{1, 2})
		}},
		"no end after 30s: waits at the fence: ranks 0-2, runs: rank 3; 8 ranks that still ran were ended": {124, func(v *verdict) {
			v.jobTimedOut(30*time.Second, []server.RankState{{Rank: 0, State: server.AtFence}, {Rank: 1, State: server.AtFence}, {Rank: 2, State: server.AtFence}, {Rank: 3, State: server.Running}})
		}},
		"ended by the user (interrupt); 8 ranks that still ran were ended": {130, func(v *verdict) {
			v.jobInterrupted("ended by the user (interrupt)", 2)
		}},
	} {
		v := runningJob()
		c.happen(v)
		require.Equal(t, &Failure{c.status, want}, v.failure)
		require.EqualError(t, v.failure, want)
		require.True(t, v.ending)
	}
	v := newVerdict([]string{"localhost", "localhost"})
	require.True(t, v.rankNotStarted(1, frame.Failure{Why: "no such file", Status: 127}))
	require.Equal(t, &Failure{127, "rank 1 on localhost could not be started: no such file"}, v.failure)
	require.False(t, v.rankNotStarted(0, frame.Failure{Why: "no such file", Status: 127}))
	require.True(t, v.allEnded())
	v = newVerdict([]string{"localhost"})
	require.True(t, v.rankExited(0, status(4), false, false))
	require.EqualError(t, v.failure, "rank 0 on localhost exited with status 4")
	v = runningJob()
	for _, r := range []int{0, 1, 2, 3, 4, 5} {
		v.rankExited(r, status(0), false, false)
	}
	v.rankExited(6, status(1), false, false)
	require.EqualError(t, v.failure, "rank 6 on node1 (pid 4714) exited with status 1; 1 rank that still ran was ended")
}

func TestRanksText(t *testing.T) {
	require.Equal(t, "no rank", formatRanks(nil))
	require.Equal(t, "ranks 0 and 1", formatRanks([]int{0, 1}))
	require.Equal(t, "ranks 0-2, 4, 6 and 7", formatRanks([]int{0, 1, 2, 4, 6, 7}))
	var odd []int
	for i := 1; i < 1000; i += 2 {
		odd = append(odd, i)
	}
	require.Less(t, len(formatRanks(odd)), 80)
}

// TestFirstFailure checks for any order of events that the first failure is reported, and that all
// ranks that ended are counted once.
func TestFirstFailure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := runningJob()
		ended, first := map[int]bool{}, ""
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			rank := rapid.IntRange(0, 7).Draw(t, "rank")
			fails := false
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				status := rapid.IntRange(0, 2).Draw(t, "status")
				fails = v.rankExited(rank, frame.Exit{Status: status}, false, false)
				require.Equal(t, first == "" && status != 0 && !ended[rank], fails)
				ended[rank] = true
			case 1:
				fails = v.jobAborted(rank, 1, "")
				require.Equal(t, first == "", fails)
			case 2:
				fails = v.hostLost("node0", true, "x")
				require.Equal(t, first == "", fails)
				ended[0], ended[1], ended[2] = true, true, true
			}
			require.Equal(t, 8-len(ended), v.running)
			if fails {
				first = v.failure.Reason
			}
			if first != "" {
				require.Equal(t, first, v.failure.Reason)
			}
		}
	})
}
