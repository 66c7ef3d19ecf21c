package mpirun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/softrnic/softrnic/internal/mpirun/frame"
	"github.com/softrnic/softrnic/internal/pmi/server"
)

// Exit statuses that are nobody's else.
const (
	statusFailed  = 1
	statusTimeout = 124 // as timeout(1)
	statusSignal  = 128 // and the number of the signal
)

// Failure is why a job has failed: the first thing that went wrong.
type Failure struct {
	Status int // for mpirun to exit with
	Why    string
}

// Error says what happened to which rank, and to the others.
func (f *Failure) Error() string { return f.Why }

// verdict finds out whether a job has failed, and why: what happens comes in, in
// order, and each tells whether it is the first failure, at which everything has
// to be ended.
type verdict struct {
	ranks   []rankState
	left    int // ranks that have not ended
	failure *Failure
	ending  bool // what ends now is our doing

	// Ranks on several hosts notice the loss of one before its own host has told of it,
	// and exit. So with hosts, the exit of a rank is pending for a while, in which a rank
	// that was killed or a host that was lost is the failure instead.
	hosts, pending bool
}

type rankState struct {
	host   string
	pid    int
	ended  bool
	status int
}

func newVerdict(hosts []string) *verdict {
	v := &verdict{ranks: make([]rankState, len(hosts)), left: len(hosts)}
	for i, h := range hosts {
		v.ranks[i].host = h
	}
	return v
}

// done says that all ranks have ended.
func (v *verdict) done() bool { return v.left == 0 }

// supersede drops a failure that is pending, for the one that has caused it.
func (v *verdict) supersede() {
	if v.pending {
		v.pending, v.ending = false, false
	}
}

// fail notes the first failure.
func (v *verdict) fail(status int, format string, args ...any) bool {
	if v.ending {
		return false
	}
	v.ending = true
	v.failure = &Failure{Status: status, Why: fmt.Sprintf(format, args...)}
	return true
}

// who names a rank.
func (v *verdict) who(rank int) string {
	r := v.ranks[rank]
	name := fmt.Sprintf("rank %d on %s", rank, r.host)
	if r.pid != 0 {
		name += fmt.Sprintf(" (pid %d)", r.pid)
	}
	return name
}

// others says what happens to those that still run.
func (v *verdict) others() string {
	switch {
	case v.left == 0:
		return ""
	case v.left == 1 && len(v.ranks) == 2:
		return "; the other rank was ended"
	case v.left == len(v.ranks)-1:
		return fmt.Sprintf("; the other %d ranks were ended", v.left)
	case v.left == 1:
		return "; 1 rank that still ran was ended"
	}
	return fmt.Sprintf("; %d ranks that still ran were ended", v.left)
}

func (v *verdict) started(rank int, p frame.Process) { v.ranks[rank].pid = p.PID }

// end counts a rank that has ended.
func (v *verdict) end(rank int) bool {
	if v.ranks[rank].ended {
		return false
	}
	v.ranks[rank].ended = true
	v.left--
	return true
}

// exited is a rank that has ended. joined says that it has joined the job by PMI,
// and finalized that it has left it.
func (v *verdict) exited(rank int, e frame.Exit, joined, finalized bool) bool {
	if !v.end(rank) {
		return false
	}
	v.ranks[rank].status = e.Status
	switch {
	case e.Signal != 0:
		v.supersede()
		core := ""
		if e.Core {
			core = ", core dumped"
		}
		return v.fail(statusSignal+e.Signal, "%s was ended by signal %d (%s%s)%s", v.who(rank), e.Signal, e.Name, core, v.others())
	case e.Status != 0:
		failed := v.fail(e.Status, "%s exited with status %d%s", v.who(rank), e.Status, v.others())
		v.pending = v.pending || failed && v.hosts
		return failed
	case joined && !finalized:
		return v.fail(statusFailed, "%s exited with status 0 in the middle of the job, without MPI_Finalize%s", v.who(rank), v.others())
	}
	return false
}

// notStarted is a rank that could not be started.
func (v *verdict) notStarted(rank int, f frame.Failure) bool {
	v.end(rank)
	return v.fail(f.Status, "%s could not be started: %s", v.who(rank), f.Why)
}

// aborted is a rank that wants the job to end. It has not ended itself.
func (v *verdict) aborted(rank, code int, why string) bool {
	if why != "" {
		why = ": " + why
	}
	status := code & 0xff
	if status == 0 {
		status = statusFailed
	}
	others := ""
	if !v.ranks[rank].ended {
		v.left--
		others = v.others()
		v.left++
	}
	return v.fail(status, "%s aborted the job with code %d%s%s", v.who(rank), code, why, others)
}

// lost is an agent that has ended without a farewell, or was never reached.
func (v *verdict) lost(host string, reached bool, why string) bool {
	var ranks []int
	for i, r := range v.ranks {
		if r.host == host && v.end(i) {
			ranks = append(ranks, i)
		}
	}
	v.supersede()
	if !reached {
		return v.fail(statusFailed, "%s cannot be reached, where %s should run: %s", host, ranksText(ranks), why)
	}
	return v.fail(statusFailed, "%s was lost with %s: %s%s", host, ranksText(ranks), why, v.others())
}

// unreachable is the failure of hosts whose agents do not answer in time.
func (v *verdict) unreachable(hosts []string, after time.Duration) bool {
	var ranks []int
	for i, r := range v.ranks {
		if slices.Contains(hosts, r.host) && v.end(i) {
			ranks = append(ranks, i)
		}
	}
	return v.fail(statusFailed, "%s cannot be reached, where %s should run: no answer within %v", strings.Join(hosts, ", "), ranksText(ranks), after)
}

// stuck are ranks that wait for others that have ended.
func (v *verdict) stuck(waiting, gone []int) bool {
	verb := "has"
	if len(gone) > 1 {
		verb = "have"
	}
	verb2 := "waits"
	if len(waiting) > 1 {
		verb2 = "wait"
	}
	return v.fail(statusFailed, "%s %s at the fence for %s, which %s ended or finalized%s", ranksText(waiting), verb2, ranksText(gone), verb, v.others())
}

// timeout is the end of the job's time.
func (v *verdict) timeout(after time.Duration, ranks []server.RankState) bool {
	return v.fail(statusTimeout, "no end after %v: %s%s", after, whereTheyAre(ranks), v.others())
}

// interrupted is the user, who wants no more.
func (v *verdict) interrupted(name string, number int) bool {
	return v.fail(statusSignal+number, "%s%s", name, v.others())
}

// whereTheyAre says how far ranks are, those in the same state together.
func whereTheyAre(ranks []server.RankState) string {
	var parts []string
	for _, state := range []server.State{server.AtFence, server.Running, server.NotJoined, server.Finalized} {
		var list []int
		for _, r := range ranks {
			if r.State == state {
				list = append(list, r.Rank)
			}
		}
		if len(list) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", state, ranksText(list)))
		}
	}
	return strings.Join(parts, ", ")
}

// ranksText writes a list of ranks: "rank 3", "ranks 0-2 and 5".
func ranksText(list []int) string {
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
