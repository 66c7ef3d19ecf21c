package perftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
)

// helloPatience is how long a client may take for its first message.
const helloPatience = 10 * time.Second

// sync waits for the peer.
func (r *runner) sync() error {
	_, err := r.talk.keys(r.end.mine[0], "wait for each other")
	return err
}

// meet tells each other the queue pairs and connects them. The order is that of
// the eight programs.
func (r *runner) meet() error {
	e := r.end
	if r.Test.Metric == Latency && r.Test.Verb != Send {
		if err := r.sync(); err != nil {
			return err
		}
	}
	for _, mine := range e.mine {
		theirs, err := r.talk.keys(mine, "exchange addresses")
		if err != nil {
			return err
		}
		e.theirs = append(e.theirs, theirs)
	}
	if !r.RDMACM {
		if err := e.connect(); err != nil {
			return r.talk.fail("connect to its queue pairs", err)
		}
	}
	if r.Test.Verb == Send {
		if err := r.sync(); err != nil {
			return err
		}
	}
	r.print("local", e.mine)
	for i, mine := range e.mine {
		theirs, err := r.talk.keys(mine, "exchange addresses again")
		if err != nil {
			return err
		}
		e.theirs[i] = theirs
	}
	r.print("remote", e.theirs)
	if r.Test.Verb != Send {
		return r.sync() // after the queue pairs are ready to receive
	}
	return nil
}

func (r *runner) print(which string, keys []Keys) {
	if !r.full() {
		return
	}
	for _, k := range keys {
		r.address(r.Out, which, k)
	}
}

// play runs the test.
func (r *runner) play(ctx context.Context) error {
	ctx, alive := watch.Start(ctx, r.Idle)
	defer alive.Stop()
	r.talk.patient = func(a *ahead) error { return r.awaitPeer(ctx, alive, a) }
	switch {
	case !r.sends && !r.receives:
		return r.serve()
	case r.Test.Metric == Bandwidth:
		return r.bandwidthTest(ctx, alive)
	}
	return r.latencyTest(ctx, alive)
}

// awaitPeer waits for the peer's next message as long as the test is alive: our
// queue pairs receive, if nothing else.
func (r *runner) awaitPeer(ctx context.Context, alive *watch.Watch, a *ahead) error {
	tick := time.NewTicker(max(r.Idle/16, time.Millisecond))
	defer tick.Stop()
	before := make([]uint32, len(r.end.qps))
	for {
		select {
		case <-a.done:
			return nil
		case <-ctx.Done():
			return r.talk.fail("wait for its end of the test", context.Cause(ctx))
		case <-tick.C:
		}
		for i, qp := range r.end.qps {
			if attr, _ := qp.Query(); attr.RQPSN != before[i] {
				before[i] = attr.RQPSN
				alive.Beat()
			}
		}
	}
}

// serve is the side of a test whose program has nothing to do but to wait for
// the client's end, and its report.
func (r *runner) serve() error {
	bandwidth := r.Test.Metric == Bandwidth
	if bandwidth {
		r.header()
	}
	r.talk.listen(r.talk.keysLen())
	err := r.sync()
	if r.Infinite && errors.Is(err, oob.ErrGone) {
		fmt.Fprintln(r.Out, " Client closed connection")
		return nil
	}
	if err != nil {
		return err
	}
	if !bandwidth { // that was its end
		r.rule()
		return errors.Join(r.farewell(), r.validate())
	}
	// What we know ourselves is nothing, as with perftest.
	row, err := r.exchangeReports(BandwidthRow{})
	if err != nil {
		return err
	}
	r.tellBandwidth(row)
	r.rule()
	return errors.Join(r.finish(), r.validate())
}

// validate compares what a sleeping program has got.
func (r *runner) validate() error {
	if r.timed {
		return nil
	}
	return errors.Join(r.end.validate(r.largest(), r.Iters, 0), r.end.validateAdds(r.Iters))
}

// bandwidthTest is the side of a bandwidth test that does something.
func (r *runner) bandwidthTest(ctx context.Context, alive *watch.Watch) error {
	r.header()
	var row BandwidthRow
	var err error
	for _, size := range r.sizes() {
		if row, err = r.bandwidthRun(ctx, alive, size); err != nil {
			return err
		}
	}
	r.rule()
	if r.Infinite {
		return nil // the peer is gone
	}
	if !r.Bidirectional && !r.takesReceives() {
		if err := r.sync(); err != nil {
			return err
		}
		if _, err := r.exchangeReports(row); err != nil {
			return err
		}
	}
	return r.finish()
}

// bandwidthRun is one size of a bandwidth test.
func (r *runner) bandwidthRun(ctx context.Context, alive *watch.Watch, size int) (BandwidthRow, error) {
	none := BandwidthRow{}
	if r.WarmUp && r.sends {
		if err := r.warmUp(ctx, alive, size); err != nil {
			return none, err
		}
	}
	t, err := r.end.newTraffic(size)
	if err != nil {
		return none, err
	}
	t.tell = func(f flow) { r.tellBandwidth(r.row(f)) }
	if r.Bidirectional || r.takesReceives() {
		if err := r.sync(); err != nil {
			return none, err
		}
	}
	before, err := r.measure()
	if err != nil {
		return none, err
	}
	next := r.talk.listen(r.nextLen())
	during, stop := r.talk.watchPeer(ctx, next, 0)
	defer stop()
	whole, stopLoss := t.watchLoss(during, alive, next.done)
	defer stopLoss()
	err = t.run(whole, alive)
	if r.Infinite && errors.Is(err, oob.ErrGone) {
		fmt.Fprintln(r.Out, " Client closed connection")
		return none, nil
	}
	if err != nil {
		return none, r.reportInterrupted(ctx, t, err)
	}
	if t.lost > 0 {
		fmt.Fprintf(r.Log, "%d of %d messages were lost: what gets lost on the way is not repeated\n", t.lost, t.total)
		r.result.Lost += t.lost
	}
	mine := r.row(t.flow())
	if mine.CPU, err = before.cpu(r.plan); err != nil {
		return none, err
	}
	if err := r.reports(mine); err != nil {
		return none, err
	}
	if err := r.counters(before); err != nil || t.lost > 0 || r.timed {
		return mine, err
	}
	return mine, r.end.validate(size, r.Iters, 0)
}

// reportInterrupted writes the row of what a bandwidth run has moved until a signal, or
// another end of ctx that is not the watch's, ended it, and returns err.
func (r *runner) reportInterrupted(ctx context.Context, t *traffic, err error) error {
	if !interrupted(ctx) {
		return err
	}
	if f := t.partialFlow(); f.messages > 0 && f.to > f.from {
		r.tellBandwidth(r.row(f))
		r.rule()
	}
	return err
}

// interrupted reports whether something else than idleness ended the context of a test.
func interrupted(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), watch.ErrIdle)
}

// nextLen is the length of the peer's next message behind a run.
func (r *runner) nextLen() int {
	if r.Bidirectional && r.tellsBoth() && !r.syncsBehind() {
		return 8 // the first number of its report
	}
	return r.talk.keysLen()
}

// tellsBoth reports whether both sides of a test in both directions tell each
// other what they got, for the sum to be reported.
func (r *runner) tellsBoth() bool { return r.Bidirectional && !(r.takesReceives() && r.timed) }

// syncsBehind reports whether both sides wait for each other behind each size,
// before the report; those of send tests do so behind it.
func (r *runner) syncsBehind() bool {
	return r.Test.Verb != Send && r.All && (r.Bidirectional || r.WithImm)
}

// reports writes the row of a run, of both directions if there are two.
func (r *runner) reports(mine BandwidthRow) error {
	if r.syncsBehind() {
		if err := r.sync(); err != nil {
			return err
		}
	}
	if r.tellsBoth() {
		theirs, err := r.exchangeReports(mine)
		if err != nil {
			return err
		}
		r.tellBandwidth(mine.plus(theirs))
		if r.ReportBoth {
			r.section("Local", mine)
			r.section("Remote", theirs)
		}
	} else {
		r.tellBandwidth(mine)
	}
	if r.Test.Verb == Send && r.All {
		return r.sync()
	}
	return nil
}

// section writes the row of one direction under a heading.
func (r *runner) section(which string, row BandwidthRow) {
	r.rule()
	fmt.Fprintf(r.Out, "\n %s results: \n", which)
	r.header()
	r.bandwidth(row)
}

// tellBandwidth writes a row and keeps it.
func (r *runner) tellBandwidth(row BandwidthRow) {
	r.result.Bandwidth = append(r.result.Bandwidth, row)
	r.bandwidth(row)
}

// exchangeReports tells each other the results.
func (r *runner) exchangeReports(mine BandwidthRow) (theirs BandwidthRow, err error) {
	size, err := r.talk.number(uint64(mine.Size))
	if err != nil {
		return theirs, err
	}
	iters, err := r.talk.number(uint64(mine.Iters))
	if err != nil {
		return theirs, err
	}
	theirs.Size, theirs.Iters = int64(size), int64(iters)
	for _, f := range []struct {
		mine   float64
		theirs *float64
	}{{mine.Peak, &theirs.Peak}, {mine.Average, &theirs.Average}, {mine.MsgRate, &theirs.MsgRate}} {
		if *f.theirs, err = r.talk.float(f.mine); err != nil {
			return theirs, err
		}
	}
	return theirs, nil
}

// latencyTest is a side of a latency test that does something.
func (r *runner) latencyTest(ctx context.Context, alive *watch.Watch) error {
	perUnit, err := r.perUnit()
	if err != nil {
		return err
	}
	r.header()
	for _, size := range r.sizes() {
		if err := r.latencyRun(ctx, alive, size, perUnit); err != nil {
			return err
		}
	}
	r.rule()
	if r.Test.Verb == Write { // which ends without a word
		r.Stay(ctx)
		return nil
	}
	return r.finish()
}

// closeGrace is the time in which a side of write_lat completes after its peer has
// closed the connection, which it does without a word: several retransmission timeouts.
const closeGrace = time.Second

// latencyRun is one size of a latency test.
func (r *runner) latencyRun(ctx context.Context, alive *watch.Watch, size int, perUnit float64) error {
	t, err := r.end.newRounds(size)
	if err != nil {
		return err
	}
	if r.takesReceives() {
		if err := r.sync(); err != nil {
			return err
		}
	}
	before, err := r.measure()
	if err != nil {
		return err
	}
	var grace time.Duration
	if r.Test.Verb == Write {
		grace = closeGrace
	}
	during, stop := r.talk.watchPeer(ctx, r.talk.listen(r.talk.keysLen()), grace)
	defer stop()
	if err := t.run(during, alive); err != nil {
		if r.takesReceives() && !r.timed && t.got == int64(r.Iters) {
			// The peer has what we have, and may have left because that is wrong.
			return errors.Join(r.end.validate(size, r.Iters, 0), err)
		}
		if interrupted(ctx) {
			if row := t.row(perUnit); row.Average > 0 {
				r.result.Latency = append(r.result.Latency, row)
				r.latency(row)
				r.rule()
			}
		}
		return err
	}
	row := t.row(perUnit)
	if row.CPU, err = before.cpu(r.plan); err != nil {
		return err
	}
	r.result.Latency = append(r.result.Latency, row)
	r.latency(row)
	if err := r.counters(before); err != nil || r.timed {
		return err
	}
	last := 0
	if r.Test.Verb == Write && !r.WithImm {
		last = 1 // the number of the round
	}
	return r.end.validate(size, r.Iters, last)
}

// finish ends the conversation.
func (r *runner) finish() error {
	if err := r.sync(); err != nil {
		return err
	}
	return r.farewell()
}

// farewell is the last word over TCP. The original does not read ours, so it
// may be gone already; and who closes before it has read makes its system tell
// the peer that something went wrong.
func (r *runner) farewell() error {
	if _, ok := r.talk.channel.(tcp); ok {
		word := []byte("done\x00")
		if r.talk.write(word, "say goodbye") == nil {
			_ = r.talk.read(word, "hear its goodbye")
		}
	}
	return nil
}
