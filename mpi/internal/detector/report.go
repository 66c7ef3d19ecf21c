package detector

import (
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// formatReport returns a report with its headline.
func (d *Detector) formatReport(r *deadlock.Report) string {
	return fmt.Sprintf("softrnic mpi: state of the %d ranks of the job, queried by rank %d at %s\n%s",
		d.engine.Size(), d.engine.Rank(), time.Now().Format(time.TimeOnly), r)
}

// localState returns the state of this rank.
func (d *Detector) localState(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp, stacks map[uint64][]uintptr) *deadlock.State {
	now := time.Now()
	d.updateLastCall(last, now)
	s := &deadlock.State{Rank: d.engine.Rank(), PID: os.Getpid(), Quiet: now.Sub(d.lastCallAt).Milliseconds()}
	s.Host, _ = os.Hostname()
	described := map[*waitState]bool{}
	for _, x := range waiting {
		describer, ok := x.Target.(deadlock.Describer)
		switch {
		case !ok:
			continue
		case len(s.Calls) == deadlock.MaxListed:
			s.MoreCalls++
			continue
		}
		c := describer.DescribeWait()
		c.At = callerLine(stacks[x.ID])
		if p := d.polledCall(x.Target); p != nil {
			d.markPolled(&c, p)
			described[p] = true
		}
		if state := d.waits[waitKey(x)]; state != nil {
			c.Millis = now.Sub(state.since).Milliseconds()
		}
		s.Calls = append(s.Calls, c)
	}
	s.Calls = append(s.Calls, d.describePolls(now, described)...)
	s.Last = d.calls.DescribeLastCall(last.Send, last.Peer, last.Envelope)
	if last.Calls == 0 {
		s.Last = ""
	}
	s.Collectives = d.calls.LastCalls(deadlock.MaxListed)
	for _, x := range d.lost {
		s.Lost = append(s.Lost, fmt.Sprintf("rank %d: %s", x.rank, x.reason))
	}
	d.addUnmatched(core, s)
	return s
}

// addUnmatched adds the unexpected messages, the posted receives and the sends without a match
// to the state.
func (d *Detector) addUnmatched(core *protocol.Core, s *deadlock.State) {
	add := func(list *[]deadlock.Message, left *int, e match.Envelope, from, to, bytes int, held bool) bool {
		m, ok := d.calls.DescribeMessage(e, from, to, bytes)
		if !ok {
			return true
		}
		if m.Held = held; !deadlock.AddMessage(list, m) {
			*left++
		}
		return *left < deadlock.MaxLeft
	}
	core.EachReceive(func(r *protocol.Request) bool {
		return add(&s.Receives, &s.Left.Receives, r.Envelope, int(r.Envelope.Source), deadlock.Any, len(r.Buf), false)
	})
	core.EachMessage(func(m *protocol.Message, announced bool) bool {
		return add(&s.Messages, &s.Left.Messages, m.Envelope, int(m.Envelope.Source), deadlock.Any, int(m.Length), announced)
	})
	core.EachSend(func(r *protocol.Request) bool {
		return add(&s.Sends, &s.Left.Sends, r.Envelope, deadlock.Any, r.Dest, len(r.Buf), r.Stage() == protocol.Unsent)
	})
}

// internalPrefixes are the function prefixes that callerLine skips.
var internalPrefixes = [...]string{"runtime.", "github.com/softrnic/softrnic/internal/", "github.com/softrnic/softrnic/mpi.", "github.com/softrnic/softrnic/mpi/internal/"}

// callerLine returns the program's file, with its folder, and line that made a call, or "".
func callerLine(pcs []uintptr) string {
	if len(pcs) == 0 {
		return ""
	}
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		inside := f.Function == ""
		for _, prefix := range internalPrefixes {
			inside = inside || strings.HasPrefix(f.Function, prefix)
		}
		if !inside {
			dir, file := path.Split(f.File)
			return fmt.Sprintf("%s:%d", path.Join(path.Base(dir), file), f.Line)
		}
		if !more {
			return ""
		}
	}
}
