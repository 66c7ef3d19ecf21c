package detector

import (
	"fmt"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// waitState is the state of a call that waits, or of a condition that is polled.
type waitState struct {
	since     time.Time
	probes    probeSchedule
	alarmFrom time.Time // start of the time after which the alarm is raised
	alarmed   bool
	missed    int // number of samples without the wait

	polled bool           // the program polls it
	poll   *deadlock.Poll // nil for a nonblocking collective call, whose goroutine waits
	stack  []uintptr      // of the polling program
}

// waits are the waits that the samples have found.
type waits struct {
	*rank
	all        map[any]*waitState // waiting calls by waitKey, and polled conditions by engine.PollRecord.Key
	callCount  uint64             // number of calls at the last sample
	lastCallAt time.Time          // time at which callCount changed
}

// waitKey returns the identity of a wait.
func waitKey(w engine.ActiveWait) any {
	if x, ok := w.Target.(deadlock.Keyed); ok {
		return x.WaitKey()
	}
	return w.ID
}

// updateLastCall updates the time of the last call, and reports whether there was one since the
// last sample.
func (w *waits) updateLastCall(last engine.LastOp, now time.Time) bool {
	if last.Calls == w.callCount {
		return false
	}
	w.callCount, w.lastCallAt = last.Calls, now
	return true
}

// trackWait returns the state of a wait or a poll that this sample has found.
func (w *waits) trackWait(key any, now time.Time) *waitState {
	x := w.all[key]
	if x == nil {
		x = &waitState{since: now, alarmFrom: now, probes: probeSchedule{last: now, interval: sampleInterval}}
		w.all[key] = x
	}
	x.missed = 0
	return x
}

// checkWaits updates the states of the waiting calls and probes the ranks that they wait for. It
// reports whether the alarm is due.
func (w *waits) checkWaits(core *protocol.Core, waiting []engine.ActiveWait, now time.Time) (alarm bool) {
	for _, a := range waiting {
		x := w.trackWait(waitKey(a), now)
		describer, ok := a.Target.(deadlock.Describer)
		if !ok {
			continue
		}
		if w.isDue(now.Sub(x.probes.last), x.probes.interval) {
			h, payload := envelope.Header{}, []byte(nil)
			if n, ok := a.Target.(deadlock.Prober); ok {
				var contextID uint32
				contextID, payload = n.ProbeCall()
				h.ID = uint64(contextID)
			}
			w.probeRanks(core, &x.probes, h, payload, describer.DescribeWait().For, now)
		}
		if w.isOverdue(x, now) && (!describer.DescribeWait().Aside || w.polledCall(a.Target) != nil) {
			x.alarmed, alarm = true, true
		}
	}
	return alarm
}

// startSample prepares the states for the waits of a sample.
func (w *waits) startSample() {
	for _, x := range w.all {
		x.missed++
	}
}

// endSample removes the waits that have ended.
func (w *waits) endSample() {
	for key, x := range w.all {
		if x.missed > 1 {
			delete(w.all, key)
		}
	}
}

// isOverdue reports whether a wait exceeds the alarm time and has not raised the alarm.
func (w *waits) isOverdue(x *waitState, now time.Time) bool {
	return w.Alarm > 0 && !x.alarmed && now.Sub(x.alarmFrom) >= w.Alarm
}

// polledCall returns the state of the polled nonblocking call whose goroutine waits for target, or
// nil.
func (w *waits) polledCall(target engine.Waitable) *waitState {
	if x, ok := target.(deadlock.Background); ok {
		return w.all[x.PollKey()]
	}
	return nil
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
