package perftest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// A latencyRun measures the latency of one message size.
type latencyRun struct {
	*endpoint
	ctx   context.Context
	alive *watch.Watch
	clock
	measureWindow
	size          int
	wr            []verbs.SendWR
	rwr           []verbs.RecvWR
	wc            []verbs.WC
	polls         int
	sent          int64
	received      int64
	acked         int64
	completed     int64   // rounds
	countedRounds int64   // of these, within the measurement window
	times         []int64 // of each post; nil if timed
}

// newLatencyRun prepares a run of messages of a size and posts the receives.
func (e *endpoint) newLatencyRun(size int) (*latencyRun, error) {
	r := &latencyRun{endpoint: e, clock: newClock(), measureWindow: e.newWindow(), size: size, wc: make([]verbs.WC, 1)}
	if e.sends {
		r.wr = e.sendRequests(0, size)
	}
	if !e.timed {
		r.times = make([]int64, 0, e.Iters)
	}
	if e.receives {
		at, front := e.areas[0], 0
		if e.Connection == verbs.UD {
			front = grhLen
		}
		r.rwr = []verbs.RecvWR{{SGList: []verbs.SGE{at.mr.SGE(at.recv-front, size+front)}}}
		for range e.rxDepth {
			if err := r.postReceive(); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

func (r *latencyRun) postReceive() (err error) {
	if r.srq != nil {
		_, err = r.srq.PostRecv(r.rwr)
	} else {
		_, err = r.qps[0].PostRecv(r.rwr)
	}
	return err
}

// run runs all rounds.
func (r *latencyRun) run(ctx context.Context, alive *watch.Watch) (err error) {
	r.ctx, r.alive = ctx, alive
	switch {
	case r.Test.fetches():
		err = r.fetchRounds()
	case r.receives:
		err = r.sendRounds()
	default:
		err = r.writeRounds()
	}
	if errors.Is(err, errTimeOver) {
		return nil
	}
	if errors.Is(err, watch.ErrIdle) || errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: %d messages posted, %d received", err, r.sent, r.received)
		if r.Connection != verbs.RC {
			err = fmt.Errorf("%w; this transport does not retransmit", err)
		}
	}
	return err
}

// hasMore reports whether there are rounds after n of them.
func (r *latencyRun) hasMore(n int64) bool {
	if r.timed {
		return !r.expired(r.now())
	}
	return n < int64(r.Iters)
}

// fetchRounds is the client of read_lat and atomic_lat; the server is passive.
func (r *latencyRun) fetchRounds() error {
	for r.startWindow(r.now()); r.hasMore(r.sent); {
		if err := r.postNext(verbs.SendSignaled); err != nil {
			return err
		}
		if err := r.waitCompletions(func() bool { return r.acked == r.sent }); err != nil {
			return err
		}
		r.countRound()
	}
	return nil
}

// countRound counts a completed round.
func (r *latencyRun) countRound() {
	r.completed++
	if r.timed && r.inWindow(r.now()) {
		r.countedRounds++
	}
}

// writeRounds polls memory for the peer's writes. The server writes first. Both write the number
// of the round into the last byte of a message.
func (r *latencyRun) writeRounds() error {
	at := r.areas[0]
	last := at.recv + r.size - 1
	come := func() bool {
		word := r.mrs[0].LoadUint64(last &^ 7)
		return byteOf(word, last&7) == byte(r.received)
	}
	mine := &at.mr.Bytes()[at.send+r.size-1]
	defer func(content byte) { *mine = content }(*mine)
	for r.startWindow(r.now()); r.hasMore(r.sent) || !r.timed && (r.hasMore(r.received) || r.hasMore(r.acked)); {
		if r.hasMore(r.received) && !(r.sent < 1 && !r.client) {
			r.received++
			if err := r.pollMemory(come); err != nil {
				return err
			}
		}
		if r.hasMore(r.sent) {
			*mine = byte(r.sent + 1)
			if err := r.postNext(verbs.SendSignaled); err != nil {
				return err
			}
		}
		if r.acked < r.sent {
			if err := r.waitCompletions(func() bool { return r.acked == r.sent }); err != nil {
				return err
			}
			r.countRound()
		}
	}
	return nil
}

// sendRounds waits for receives. The client sends first.
func (r *latencyRun) sendRounds() error {
	taken := int64(0) // of those that have come
	for r.hasMore(r.sent) || !r.timed && r.hasMore(taken) {
		if r.hasMore(taken) && !(r.sent < 1 && r.client) {
			taken++
			if err := r.waitCompletions(func() bool { return r.received >= taken }); err != nil {
				return err
			}
			r.startWindow(r.now())
			r.countRound()
			if r.timed || taken+int64(r.rxDepth) <= int64(r.Iters) {
				if err := r.postReceive(); err != nil {
					return err
				}
			}
		}
		if !r.hasMore(r.sent) {
			continue
		}
		var signaled verbs.SendFlags
		if (r.sent+1)%int64(r.cqMod) == 0 || !r.timed && r.sent+1 == int64(r.Iters) {
			signaled = verbs.SendSignaled
		}
		if err := r.postNext(signaled); err != nil {
			return err
		}
		if signaled != 0 {
			if err := r.waitCompletions(func() bool { return r.acked == r.sent }); err != nil {
				return err
			}
		}
	}
	return nil
}

// postNext posts the next message.
func (r *latencyRun) postNext(signaled verbs.SendFlags) error {
	if r.Gap > 0 {
		for till := r.now() + int64(r.Gap); r.now() < till; {
			r.dev.Progress()
		}
	}
	if !r.timed {
		r.times = append(r.times, r.now())
	}
	r.setRequest(&r.wr[0], 0, 0, r.size)
	r.wr[0].WRID = uint64(r.sent + 1)
	r.wr[0].Flags = r.wr[0].Flags&^verbs.SendSignaled | signaled
	_, err := r.qps[0].PostSend(r.wr)
	r.sent++
	return err
}

// waitCompletions handles completions until done reports true.
func (r *latencyRun) waitCompletions(done func() bool) error {
	for !done() {
		n, err := r.pollOnce()
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		r.alive.Beat()
		wc := &r.wc[0]
		switch {
		case wc.Err() != nil:
			return fmt.Errorf("completion with error: failed status %d: %w", wc.Status, wc.Err())
		case wc.Opcode.IsRecv():
			if err := r.checkLength(r.size, wc); err != nil {
				return err
			}
			r.received++
		default:
			r.acked = int64(wc.WRID)
		}
	}
	return nil
}

func (r *latencyRun) pollOnce() (n int, err error) {
	if r.Events {
		n, err = r.cq.PollWait(r.ctx, r.wc)
	} else {
		n, err = r.cq.Poll(r.wc)
	}
	if n == 0 {
		if err := r.onEmptyPoll(); err != nil {
			return 0, err
		}
	}
	return n, err
}

// pollMemory polls memory until come reports true.
func (r *latencyRun) pollMemory(come func() bool) error {
	for !come() {
		if r.dev.Progress() == 0 {
			if err := r.onEmptyPoll(); err != nil {
				return err
			}
		}
	}
	r.alive.Beat()
	return nil
}

// onEmptyPoll checks the context and the duration every contextCheckPolls polls.
func (r *latencyRun) onEmptyPoll() error {
	if r.polls++; r.polls%contextCheckPolls != 0 && !r.Events {
		return nil
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.timed && r.expired(r.now()) {
		return errTimeOver
	}
	return nil
}

// errTimeOver ends a wait at the end of the test's duration, when the peer has finished first.
var errTimeOver = errors.New("test duration has ended")

// A LatencyRow is a row of a latency test's report, in microseconds (or cycles).
type LatencyRow struct {
	Size    int64
	Iters   int64
	Min     float64
	Max     float64
	Typical float64 // median
	Average float64
	Stdev   float64
	P99     float64
	P999    float64
	TPS     float64 // round trips a second; of a test of a given duration
	CPU     *float64

	sorted  []float64 // all of them
	samples []float64 // as they came
}

// outliers is the number of longest rounds that do not count, as in perftest.
const outliers = 2

// latencyRow returns the row of a run.
func (r *latencyRun) latencyRow(perUnit float64) LatencyRow {
	row := LatencyRow{Size: int64(r.size)}
	ways := r.Test.roundTrips()
	if r.timed {
		from, to, early := r.measuredSpan(r.now())
		row.Iters = r.countedRounds
		if early {
			row.Iters = r.completed
		}
		if seconds := float64(to-from) / 1e9; row.Iters > 0 {
			row.Average = seconds * 1e9 / perUnit / ways / float64(row.Iters)
			row.TPS = float64(row.Iters) / seconds
		}
		return row
	}
	row.Iters = int64(len(r.times)) // all, unless the test was ended
	for i := 1; i < len(r.times); i++ {
		row.samples = append(row.samples, float64(r.times[i]-r.times[i-1])/perUnit/ways)
	}
	row.summarize()
	return row
}

// summarize computes the figures from samples. The median, the average and the deviation exclude
// the outliers; Max is the first outlier, and the percentiles include it.
func (row *LatencyRow) summarize() {
	row.sorted = slices.Sorted(slices.Values(row.samples))
	n := len(row.sorted) - outliers
	if n < 1 {
		return
	}
	body := row.sorted[:n]
	row.Min, row.Max = body[0], row.sorted[n]
	row.Typical = body[n/2]
	if n%2 == 0 {
		row.Typical = (body[n/2] + body[n/2-1]) / 2
	}
	sum := 0.0
	for _, x := range body {
		sum += x
	}
	row.Average = sum / float64(n)
	squares := 0.0
	for _, x := range body {
		squares += (x - row.Average) * (x - row.Average)
	}
	row.Stdev = math.Sqrt(squares / float64(n))
	row.P99 = row.sorted[int(math.Ceil(float64(n)*0.99))]
	row.P999 = row.sorted[int(math.Ceil(float64(n)*0.999))]
}
