package perftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
)

// helloTimeout is the time for a client's first message.
const helloTimeout = 10 * time.Second

// syncWithPeer is a barrier with the peer, an exchange of keys.
func (r *runner) syncWithPeer() error {
	_, err := r.handshake.exchangeKeys(r.endpoint.mine[0], "wait for each other")
	return err
}

// exchangeAddresses exchanges the keys of the queue pairs and connects them, in the order of the
// test's original.
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

// runTest runs the test after the handshake.
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

// waitPeerMessage waits for the peer's next message while the test makes progress. Received
// packets of the queue pairs count as progress.
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

// runPassive is the passive side of a test, which waits for the client's end and its report.
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
	// A passive side has no figures of its own, as in perftest.
	row, err := r.exchangeReports(BandwidthRow{})
	if err != nil {
		return err
	}
	r.reportBandwidth(row)
	r.writeRule()
	return errors.Join(r.finishTest(), r.validatePassive())
}

// validatePassive verifies the memory of a passive side.
func (r *runner) validatePassive() error {
	if r.timed {
		return nil
	}
	return errors.Join(r.endpoint.validateMemory(r.maxMessageSize(), r.Iters, 0), r.endpoint.validateSums(r.Iters))
}

// bandwidthTest runs an active side of a bandwidth test.
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

// measureBandwidth measures one message size.
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
	if t.timed && t.receives {
		r.handshake.waitAhead = func(a *pendingRead) error {
			if err := t.receiveUntilPeerEnds(ctx, a); err != nil {
				return r.handshake.peerError("receive until its end of the test", err)
			}
			return nil
		}
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

// reportInterrupted writes the row of a bandwidth run that ctx has ended, unless the watch ended
// it, and returns err.
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

// interrupted reports whether the context of a test ended for another reason than idleness.
func interrupted(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), watch.ErrIdle)
}

// nextMessageLen returns the length of the peer's next message after a run.
func (r *runner) nextMessageLen() int {
	if r.Bidirectional && r.exchangesReports() && !r.syncsAfterSize() {
		return 8 // the first number of its report
	}
	return r.handshake.keysLen()
}

// exchangesReports reports whether both sides of a bidirectional test exchange reports, whose sum
// is reported.
func (r *runner) exchangesReports() bool {
	return r.Bidirectional && !(r.consumesReceives() && r.timed)
}

// syncsAfterSize reports whether the sides sync after each size, before the report. Send tests
// sync after the report.
func (r *runner) syncsAfterSize() bool {
	return r.Test.Verb != Send && r.All && (r.Bidirectional || r.WithImm)
}

// reportRun writes the row of a run, with both directions if there are two.
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

// reportBandwidth writes a row and appends it to the result.
func (r *runner) reportBandwidth(row BandwidthRow) {
	r.result.Bandwidth = append(r.result.Bandwidth, row)
	r.writeBandwidth(row)
}

// exchangeReports exchanges the results with the peer.
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

// latencyTest runs an active side of a latency test.
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

// closeGrace is the time for a side of write_lat to complete after the peer has closed the
// connection: several retransmission timeouts.
const closeGrace = time.Second

// measureLatency measures one message size.
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
			// The peer has all messages and may have closed because its data is wrong.
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

// finishTest ends the handshake after the last report.
func (r *runner) finishTest() error {
	if err := r.syncWithPeer(); err != nil {
		return err
	}
	return r.exchangeGoodbye()
}

// exchangeGoodbye sends the last message over TCP and reads the peer's, so that closing does not
// reset the connection. Errors are ignored, because an original does not read it and may have
// exited.
func (r *runner) exchangeGoodbye() error {
	if _, ok := r.handshake.channel.(tcpChannel); ok {
		word := []byte("done\x00")
		if r.handshake.write(word, "say goodbye") == nil {
			_ = r.handshake.read(word, "hear its goodbye")
		}
	}
	return nil
}
