package perftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
)

// helloTimeout is how long a client may take for its first message.
const helloTimeout = 10 * time.Second

// syncWithPeer waits for the peer.
func (r *runner) syncWithPeer() error {
	_, err := r.handshake.exchangeKeys(r.endpoint.mine[0], "wait for each other")
	return err
}

// exchangeAddresses tells each other the queue pairs and connects them. The order is that of
// the eight programs.
func (r *runner) exchangeAddresses() error {
	e := r.endpoint
	if r.Test.Metric == Latency && r.Test.Verb != Send {
		if err := r.syncWithPeer(); err != nil {
			return err
		}
	}
	for _, mine := range e.mine {
		theirs, err := r.handshake.exchangeKeys(mine, "exchange addresses")
		if err != nil {
			return err
		}
		e.theirs = append(e.theirs, theirs)
	}
	if !r.RDMACM {
		if err := e.connectQPs(); err != nil {
			return r.handshake.peerError("connect to its queue pairs", err)
		}
	}
	if r.Test.Verb == Send {
		if err := r.syncWithPeer(); err != nil {
			return err
		}
	}
	r.printAddresses("local", e.mine)
	for i, mine := range e.mine {
		theirs, err := r.handshake.exchangeKeys(mine, "exchange addresses again")
		if err != nil {
			return err
		}
		e.theirs[i] = theirs
	}
	r.printAddresses("remote", e.theirs)
	if r.Test.Verb != Send {
		return r.syncWithPeer() // after the queue pairs are ready to receive
	}
	return nil
}

func (r *runner) printAddresses(which string, keys []Keys) {
	if !r.fullOutput() {
		return
	}
	for _, k := range keys {
		r.writeAddress(r.Out, which, k)
	}
}

// runTest runs the test.
func (r *runner) runTest(ctx context.Context) error {
	ctx, alive := watch.Start(ctx, r.IdleTimeout)
	defer alive.Stop()
	r.handshake.waitAhead = func(a *pendingRead) error { return r.waitPeerMessage(ctx, alive, a) }
	switch {
	case !r.sends && !r.receives:
		return r.runPassive()
	case r.Test.Metric == Bandwidth:
		return r.bandwidthTest(ctx, alive)
	}
	return r.latencyTest(ctx, alive)
}

// waitPeerMessage waits for the peer's next message as long as the test is alive: our
// queue pairs receive, if nothing else.
func (r *runner) waitPeerMessage(ctx context.Context, alive *watch.Watch, a *pendingRead) error {
	tick := time.NewTicker(max(r.IdleTimeout/16, time.Millisecond))
	defer tick.Stop()
	before := make([]uint32, len(r.endpoint.qps))
	for {
		select {
		case <-a.done:
			return nil
		case <-ctx.Done():
			return r.handshake.peerError("wait for its end of the test", context.Cause(ctx))
		case <-tick.C:
		}
		for i, qp := range r.endpoint.qps {
			if attr, _ := qp.Query(); attr.RQPSN != before[i] {
				before[i] = attr.RQPSN
				alive.Beat()
			}
		}
	}
}

// runPassive is the side of a test whose program has nothing to do but to wait for
// the client's end, and its report.
func (r *runner) runPassive() error {
	bandwidth := r.Test.Metric == Bandwidth
	if bandwidth {
		r.writeHeader()
	}
	r.handshake.readAhead(r.handshake.keysLen())
	err := r.syncWithPeer()
	if r.Infinite && errors.Is(err, oob.ErrPeerClosed) {
		fmt.Fprintln(r.Out, " Client closed connection")
		return nil
	}
	if err != nil {
		return err
	}
	if !bandwidth { // that was its end
		r.writeRule()
		return errors.Join(r.exchangeGoodbye(), r.validatePassive())
	}
	// What we know ourselves is nothing, as with perftest.
	row, err := r.exchangeReports(BandwidthRow{})
	if err != nil {
		return err
	}
	r.reportBandwidth(row)
	r.writeRule()
	return errors.Join(r.finishTest(), r.validatePassive())
}

// validatePassive compares what a sleeping program has got.
func (r *runner) validatePassive() error {
	if r.timed {
		return nil
	}
	return errors.Join(r.endpoint.validateMemory(r.maxMessageSize(), r.Iters, 0), r.endpoint.validateSums(r.Iters))
}

// bandwidthTest is the side of a bandwidth test that does something.
func (r *runner) bandwidthTest(ctx context.Context, alive *watch.Watch) error {
	r.writeHeader()
	var row BandwidthRow
	var err error
	for _, size := range r.messageSizes() {
		if row, err = r.measureBandwidth(ctx, alive, size); err != nil {
			return err
		}
	}
	r.writeRule()
	if r.Infinite {
		return nil // the peer is gone
	}
	if !r.Bidirectional && !r.consumesReceives() {
		if err := r.syncWithPeer(); err != nil {
			return err
		}
		if _, err := r.exchangeReports(row); err != nil {
			return err
		}
	}
	return r.finishTest()
}

// measureBandwidth is one size of a bandwidth test.
func (r *runner) measureBandwidth(ctx context.Context, alive *watch.Watch, size int) (BandwidthRow, error) {
	none := BandwidthRow{}
	if r.WarmUp && r.sends {
		if err := r.warmUp(ctx, alive, size); err != nil {
			return none, err
		}
	}
	t, err := r.endpoint.newBandwidthRun(size)
	if err != nil {
		return none, err
	}
	t.report = func(f transfer) { r.reportBandwidth(r.bandwidthRow(f)) }
	if r.Bidirectional || r.consumesReceives() {
		if err := r.syncWithPeer(); err != nil {
			return none, err
		}
	}
	before, err := r.readUsage()
	if err != nil {
		return none, err
	}
	next := r.handshake.readAhead(r.nextMessageLen())
	during, stop := r.handshake.watchPeer(ctx, next, 0)
	defer stop()
	whole, stopLoss := t.watchLoss(during, alive, next.done)
	defer stopLoss()
	err = t.run(whole, alive)
	if r.Infinite && errors.Is(err, oob.ErrPeerClosed) {
		fmt.Fprintln(r.Out, " Client closed connection")
		return none, nil
	}
	if err != nil {
		return none, r.reportInterrupted(ctx, t, err)
	}
	if t.lost > 0 {
		fmt.Fprintf(r.Log, "%d of %d messages were lost: this transport does not retransmit\n", t.lost, t.total)
		r.result.Lost += t.lost
	}
	mine := r.bandwidthRow(t.totalTransfer())
	if mine.CPU, err = before.cpuUtilization(r.plan); err != nil {
		return none, err
	}
	if err := r.reportRun(mine); err != nil {
		return none, err
	}
	if err := r.printCounters(before); err != nil || t.lost > 0 || r.timed {
		return mine, err
	}
	return mine, r.endpoint.validateMemory(size, r.Iters, 0)
}

// reportInterrupted writes the row of what a bandwidth run has moved until a signal, or
// another end of ctx that is not the watch's, ended it, and returns err.
func (r *runner) reportInterrupted(ctx context.Context, t *bandwidthRun, err error) error {
	if !interrupted(ctx) {
		return err
	}
	if f := t.partialTransfer(); f.messages > 0 && f.to > f.from {
		r.reportBandwidth(r.bandwidthRow(f))
		r.writeRule()
	}
	return err
}

// interrupted reports whether something else than idleness ended the context of a test.
func interrupted(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), watch.ErrIdle)
}

// nextMessageLen is the length of the peer's next message behind a run.
func (r *runner) nextMessageLen() int {
	if r.Bidirectional && r.exchangesReports() && !r.syncsAfterSize() {
		return 8 // the first number of its report
	}
	return r.handshake.keysLen()
}

// exchangesReports reports whether both sides of a test in both directions tell each
// other what they got, for the sum to be reported.
func (r *runner) exchangesReports() bool {
	return r.Bidirectional && !(r.consumesReceives() && r.timed)
}

// syncsAfterSize reports whether both sides wait for each other behind each size,
// before the report; those of send tests do so behind it.
func (r *runner) syncsAfterSize() bool {
	return r.Test.Verb != Send && r.All && (r.Bidirectional || r.WithImm)
}

// reportRun writes the row of a run, of both directions if there are two.
func (r *runner) reportRun(mine BandwidthRow) error {
	if r.syncsAfterSize() {
		if err := r.syncWithPeer(); err != nil {
			return err
		}
	}
	if r.exchangesReports() {
		theirs, err := r.exchangeReports(mine)
		if err != nil {
			return err
		}
		r.reportBandwidth(mine.plus(theirs))
		if r.ReportBoth {
			r.writeDirection("Local", mine)
			r.writeDirection("Remote", theirs)
		}
	} else {
		r.reportBandwidth(mine)
	}
	if r.Test.Verb == Send && r.All {
		return r.syncWithPeer()
	}
	return nil
}

// writeDirection writes the row of one direction under a heading.
func (r *runner) writeDirection(which string, row BandwidthRow) {
	r.writeRule()
	fmt.Fprintf(r.Out, "\n %s results: \n", which)
	r.writeHeader()
	r.writeBandwidth(row)
}

// reportBandwidth writes a row and keeps it.
func (r *runner) reportBandwidth(row BandwidthRow) {
	r.result.Bandwidth = append(r.result.Bandwidth, row)
	r.writeBandwidth(row)
}

// exchangeReports tells each other the results.
func (r *runner) exchangeReports(mine BandwidthRow) (theirs BandwidthRow, err error) {
	size, err := r.handshake.exchangeUint64(uint64(mine.Size))
	if err != nil {
		return theirs, err
	}
	iters, err := r.handshake.exchangeUint64(uint64(mine.Iters))
	if err != nil {
		return theirs, err
	}
	theirs.Size, theirs.Iters = int64(size), int64(iters)
	for _, f := range []struct {
		mine   float64
		theirs *float64
	}{{mine.Peak, &theirs.Peak}, {mine.Average, &theirs.Average}, {mine.MsgRate, &theirs.MsgRate}} {
		if *f.theirs, err = r.handshake.exchangeFloat(f.mine); err != nil {
			return theirs, err
		}
	}
	return theirs, nil
}

// latencyTest is a side of a latency test that does something.
func (r *runner) latencyTest(ctx context.Context, alive *watch.Watch) error {
	perUnit, err := r.nanosPerUnit()
	if err != nil {
		return err
	}
	r.writeHeader()
	for _, size := range r.messageSizes() {
		if err := r.measureLatency(ctx, alive, size, perUnit); err != nil {
			return err
		}
	}
	r.writeRule()
	if r.Test.Verb == Write { // which ends without a word
		r.Linger(ctx)
		return nil
	}
	return r.finishTest()
}

// closeGrace is the time in which a side of write_lat completes after its peer has
// closed the connection, which it does without a word: several retransmission timeouts.
const closeGrace = time.Second

// measureLatency is one size of a latency test.
func (r *runner) measureLatency(ctx context.Context, alive *watch.Watch, size int, perUnit float64) error {
	t, err := r.endpoint.newLatencyRun(size)
	if err != nil {
		return err
	}
	if r.consumesReceives() {
		if err := r.syncWithPeer(); err != nil {
			return err
		}
	}
	before, err := r.readUsage()
	if err != nil {
		return err
	}
	var grace time.Duration
	if r.Test.Verb == Write {
		grace = closeGrace
	}
	during, stop := r.handshake.watchPeer(ctx, r.handshake.readAhead(r.handshake.keysLen()), grace)
	defer stop()
	if err := t.run(during, alive); err != nil {
		if r.consumesReceives() && !r.timed && t.received == int64(r.Iters) {
			// The peer has what we have, and may have left because that is wrong.
			return errors.Join(r.endpoint.validateMemory(size, r.Iters, 0), err)
		}
		if interrupted(ctx) {
			if row := t.latencyRow(perUnit); row.Average > 0 {
				r.result.Latency = append(r.result.Latency, row)
				r.writeLatency(row)
				r.writeRule()
			}
		}
		return err
	}
	row := t.latencyRow(perUnit)
	if row.CPU, err = before.cpuUtilization(r.plan); err != nil {
		return err
	}
	r.result.Latency = append(r.result.Latency, row)
	r.writeLatency(row)
	if err := r.printCounters(before); err != nil || r.timed {
		return err
	}
	last := 0
	if r.Test.Verb == Write && !r.WithImm {
		last = 1 // the number of the round
	}
	return r.endpoint.validateMemory(size, r.Iters, last)
}

// finishTest ends the conversation.
func (r *runner) finishTest() error {
	if err := r.syncWithPeer(); err != nil {
		return err
	}
	return r.exchangeGoodbye()
}

// exchangeGoodbye is the last word over TCP. The original does not read ours, so it
// may be gone already; and who closes before it has read makes its system tell
// the peer that something went wrong.
func (r *runner) exchangeGoodbye() error {
	if _, ok := r.handshake.channel.(tcpChannel); ok {
		word := []byte("done\x00")
		if r.handshake.write(word, "say goodbye") == nil {
			_ = r.handshake.read(word, "hear its goodbye")
		}
	}
	return nil
}
