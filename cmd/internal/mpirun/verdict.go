package mpirun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
	"github.com/softrnic/softrnic/internal/pmi/server"
)

// Exit statuses of the launcher.
const (
	statusFailed  = 1
	statusTimeout = 124 // as timeout(1)
	statusSignal  = 128 // and the number of the signal
)

// A Failure describes the first error of a job.
type Failure struct {
	Status int // for mpirun to exit with
	Reason string
}

// Error names the failed rank, the cause and the fate of the other ranks.
func (f *Failure) Error() string { return f.Reason }

// A verdict determines whether and why a job has failed. Its methods take events in order and
// report whether the event is the first failure, which terminates the job.
type verdict struct {
	ranks   []rankState
	running int // ranks that have not ended
	failure *Failure
	ending  bool // the launcher terminates the ranks

	// Ranks on several hosts detect the loss of one before its host has reported it, and
	// exit. With multipleHosts, the exit of a rank is therefore pending for causeDelay, in
	// which a killed rank or a lost host replaces it as the failure.
	multipleHosts, pending bool
}

type rankState struct {
	host   string
	pid    int
	ended  bool
	status int
}

func newVerdict(hosts []string) *verdict {
	v := &verdict{ranks: make([]rankState, len(hosts)), running: len(hosts)}
	for i, h := range hosts {
		v.ranks[i].host = h
	}
	return v
}

// allEnded reports whether all ranks have ended.
func (v *verdict) allEnded() bool { return v.running == 0 }

// dropPending drops a pending failure in favor of its cause.
func (v *verdict) dropPending() {
	if v.pending {
		v.pending, v.ending = false, false
	}
}

// setFailure records the first failure and reports whether this is it.
func (v *verdict) setFailure(status int, format string, args ...any) bool {
	if v.ending {
		return false
	}
	v.ending = true
	v.failure = &Failure{Status: status, Reason: fmt.Sprintf(format, args...)}
	return true
}

// rankName returns the rank with its host and process.
func (v *verdict) rankName(rank int) string {
	r := v.ranks[rank]
	name := fmt.Sprintf("rank %d on %s", rank, r.host)
	if r.pid != 0 {
		name += fmt.Sprintf(" (pid %d)", r.pid)
	}
	return name
}

// describeOthers returns the fate of the ranks that still run.
func (v *verdict) describeOthers() string {
	switch {
	case v.running == 0:
		return ""
	case v.running == 1 && len(v.ranks) == 2:
		return "; the other rank was ended"
	case v.running == len(v.ranks)-1:
		return fmt.Sprintf("; the other %d ranks were ended", v.running)
	case v.running == 1:
		return "; 1 rank that still ran was ended"
	}
	return fmt.Sprintf("; %d ranks that still ran were ended", v.running)
}

func (v *verdict) rankStarted(rank int, p frame.Process) { v.ranks[rank].pid = p.PID }

// markEnded counts the end of a rank and reports whether it is the first report of it.
func (v *verdict) markEnded(rank int) bool {
	if v.ranks[rank].ended {
		return false
	}
	v.ranks[rank].ended = true
	v.running--
	return true
}

// rankExited records the exit of a rank. joined and finalized report whether the rank has joined
// and left the job by PMI.
func (v *verdict) rankExited(rank int, e frame.Exit, joined, finalized bool) bool {
	if !v.markEnded(rank) {
		return false
	}
	v.ranks[rank].status = e.Status
	switch {
	case e.Signal != 0:
		v.dropPending()
		core := ""
		if e.Core {
			core = ", core dumped"
		}
		return v.setFailure(statusSignal+e.Signal, "%s was ended by signal %d (%s%s)%s", v.rankName(rank), e.Signal, e.Name, core, v.describeOthers())
	case e.Status != 0:
		failed := v.setFailure(e.Status, "%s exited with status %d%s", v.rankName(rank), e.Status, v.describeOthers())
		v.pending = v.pending || failed && v.multipleHosts
		return failed
	case joined && !finalized:
		return v.setFailure(statusFailed, "%s exited with status 0 in the middle of the job, without MPI_Finalize%s", v.rankName(rank), v.describeOthers())
	}
	return false
}

// rankNotStarted records a rank that could not be started.
func (v *verdict) rankNotStarted(rank int, f frame.Failure) bool {
	v.markEnded(rank)
	return v.setFailure(f.Status, "%s could not be started: %s", v.rankName(rank), f.Why)
}

// jobAborted records the abort of the job by a rank, which may still run.
func (v *verdict) jobAborted(rank, code int, cause string) bool {
	if cause != "" {
		cause = ": " + cause
	}
	status := code & 0xff
	if status == 0 {
		status = statusFailed
	}
	others := ""
	if !v.ranks[rank].ended {
		v.running--
		others = v.describeOthers()
		v.running++
	}
	return v.setFailure(status, "%s aborted the job with code %d%s%s", v.rankName(rank), code, cause, others)
}

// hostLost records an agent that ended without a Summary or was never reached.
func (v *verdict) hostLost(host string, reached bool, cause string) bool {
	var ranks []int
	for i, r := range v.ranks {
		if r.host == host && v.markEnded(i) {
			ranks = append(ranks, i)
		}
	}
	v.dropPending()
	if !reached {
		return v.setFailure(statusFailed, "%s cannot be reached, where %s should run: %s", host, formatRanks(ranks), cause)
	}
	return v.setFailure(statusFailed, "%s was lost with %s: %s%s", host, formatRanks(ranks), cause, v.describeOthers())
}

// hostsUnreachable records hosts whose agents have not replied in time.
func (v *verdict) hostsUnreachable(hosts []string, after time.Duration) bool {
	var ranks []int
	for i, r := range v.ranks {
		if slices.Contains(hosts, r.host) && v.markEnded(i) {
			ranks = append(ranks, i)
		}
	}
	return v.setFailure(statusFailed, "%s cannot be reached, where %s should run: no reply within %v", strings.Join(hosts, ", "), formatRanks(ranks), after)
}

// ranksStuck records ranks that wait in a fence for ranks that have ended.
func (v *verdict) ranksStuck(waiting, ended []int) bool {
	verb := "has"
	if len(ended) > 1 {
		verb = "have"
	}
	verb2 := "waits"
	if len(waiting) > 1 {
		verb2 = "wait"
	}
	return v.setFailure(statusFailed, "%s %s at the fence for %s, which %s ended or finalized%s", formatRanks(waiting), verb2, formatRanks(ended), verb, v.describeOthers())
}

// jobTimedOut records the end of Options.Timeout.
func (v *verdict) jobTimedOut(after time.Duration, ranks []server.RankState) bool {
	return v.setFailure(statusTimeout, "no end after %v: %s%s", after, describeStates(ranks), v.describeOthers())
}

// jobInterrupted records a signal or the end of the context.
func (v *verdict) jobInterrupted(name string, number int) bool {
	return v.setFailure(statusSignal+number, "%s%s", name, v.describeOthers())
}

// describeStates returns the ranks grouped by their PMI state.
func describeStates(ranks []server.RankState) string {
	var parts []string
	for _, state := range []server.State{server.AtFence, server.Running, server.NotJoined, server.Finalized} {
		var list []int
		for _, r := range ranks {
			if r.State == state {
				list = append(list, r.Rank)
			}
		}
		if len(list) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", state, formatRanks(list)))
		}
	}
	return strings.Join(parts, ", ")
}

// formatRanks formats a list of ranks: "rank 3", "ranks 0-2 and 5".
func formatRanks(list []int) string {
	if len(list) == 0 {
		return "no rank"
	}
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		switch {
		case j > i+1:
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[j]))
		case j == i+1:
			parts = append(parts, fmt.Sprint(list[i]), fmt.Sprint(list[j]))
		default:
			parts = append(parts, fmt.Sprint(list[i]))
		}
		i = j + 1
	}
	if len(parts) > 12 { // of thousands
		parts = append(parts[:11], fmt.Sprintf("%d more", len(list)))
	}
	last := len(parts) - 1
	text := parts[last]
	if last > 0 {
		text = strings.Join(parts[:last], ", ") + " and " + text
	}
	if len(list) == 1 {
		return "rank " + text
	}
	return "ranks " + text
}
