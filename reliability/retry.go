package reliability

import "github.com/softrnic/softrnic/wire"

// A Retry holds the retransmission timers and retry counters of a requester:
// the local ACK timeout with retry_cnt, the RNR wait with rnr_retry, and the
// go-back caused by a sequence NAK.
type Retry struct {
	timeout        int64 // nanoseconds; 0 disables the timer
	retryLimit     uint8 // retry_cnt
	rnrLimit       uint8 // rnr_retry; 7 is unlimited
	retriesLeft    uint8
	rnrRetriesLeft uint8
	backoff        uint8 // consecutive timeouts, at most maxBackoff
	lateTimeouts   uint8 // timeouts since the last progress that were noticed too late to count

	probes         bool // probe before the timeout; only to peers that support it
	probesSent     uint8
	early          bool  // probe early, see SetEarlyProbes
	ackUnrequested bool  // no packet in flight requests an acknowledgement, so it may be delayed
	rnrDoublings   uint8 // number of times the RNR wait was doubled
	sendRefused    bool  // the system refused to send the current attempt
	nakked         bool  // a sequence NAK has caused a go-back

	nakPSN       wire.PSN // PSN of that go-back
	lastProgress Time     // last progress, or time of the first packet in flight; 0 when idle
	probeAt      Time
	rnrUntil     Time // end of the RNR wait; 0 if none
	refusedAt    Time // time of the refusal
}

// RNRForever is the rnr_retry value for unlimited retries.
const RNRForever = 7

// An Action is the action that a timer or NAK requires of the requester.
type Action uint8

const (
	NoAction Action = iota
	Probe           // retransmit the oldest packet and request an acknowledgement
	GoBack          // retransmit all packets from the oldest on
	GiveUp          // the retries are exhausted
)

// Configure sets the limits: timeout in nanoseconds (0 disables it), retry_cnt
// and rnr_retry from 0 to 7. probes enables probes before the timeout.
func (r *Retry) Configure(timeout int64, retryCnt, rnrRetry uint8, probes bool) {
	r.timeout, r.retryLimit, r.rnrLimit = timeout, retryCnt, rnrRetry
	r.retriesLeft, r.rnrRetriesLeft = retryCnt, rnrRetry
	r.probes = probes && timeout > 0
}

// OnSent records that a packet is in flight. ackRequested reports whether the
// packet requests an acknowledgement.
func (r *Retry) OnSent(now Time, ackRequested bool, rtt *RTT) {
	switch {
	case r.lastProgress == 0:
		r.lastProgress, r.probesSent = now, 0
	case !ackRequested || !r.ackUnrequested:
		return
	}
	r.ackUnrequested = !ackRequested
	r.armProbe(now, rtt)
}

// OnProgress records that a new packet was acknowledged. outstanding reports
// whether packets remain in flight, and ackRequested whether one of them requests
// an acknowledgement.
func (r *Retry) OnProgress(now Time, outstanding, ackRequested bool, rtt *RTT) {
	r.retriesLeft, r.rnrRetriesLeft, r.backoff, r.lateTimeouts = r.retryLimit, r.rnrLimit, 0, 0
	r.nakked, r.sendRefused = false, false
	r.probesSent = 0
	r.rnrUntil, r.rnrDoublings = 0, 0
	r.lastProgress, r.probeAt = 0, 0
	if outstanding {
		r.lastProgress, r.ackUnrequested = now, !ackRequested
		r.armProbe(now, rtt)
	}
}

// DelayedAckProbe is the minimum probe timeout in nanoseconds while no packet
// in flight requests an acknowledgement. The peer's delay of acknowledgements
// must be well below it.
const DelayedAckProbe = 12 * Millisecond

// SetEarlyProbes makes probes leave after a fraction of their usual minimum time.
// With selective retransmission a probe that was not necessary costs one packet
// only, and soon after a loss another one is likely.
func (r *Retry) SetEarlyProbes(early bool) { r.early = early }

func (r *Retry) armProbe(now Time, rtt *RTT) {
	r.probeAt = 0
	after := rtt.ProbeTimeout()
	switch {
	case r.ackUnrequested:
		after = max(after, DelayedAckProbe)
	case r.early:
		after = rtt.probeTimeout(earlyProbeTimeout)
	}
	if after <<= r.probesSent; r.probes && after < r.timeout {
		r.probeAt = now + Time(after)
	}
}

// ProbeSent reports whether a probe was sent since the last progress.
func (r *Retry) ProbeSent() bool { return r.probesSent > 0 }

// Deadline returns the time when OnTimer must be called next, or 0.
func (r *Retry) Deadline() Time {
	if r.rnrUntil != 0 {
		return r.rnrUntil
	}
	if r.sendRefused {
		return r.refusedAt + RefusedPause
	}
	if r.lastProgress == 0 || r.timeout == 0 {
		return 0
	}
	return Earlier(r.lastProgress+r.backedOffTimeout(), r.probeAt)
}

// RefusedPause is the number of nanoseconds between attempts that the system
// refuses to send. The next attempt does not wait for the timeout, and a
// flapping route has retry_cnt times as long to recover.
const RefusedPause = 5 * Millisecond

// OnSendRefused records that the system refused to send the current attempt, or
// that the network returned it. Each attempt counts once, for any number of
// packets, and uses a retry after RefusedPause even if the timeout is disabled.
// The result is GiveUp if no retry is left.
func (r *Retry) OnSendRefused(now Time) Action {
	switch {
	case r.sendRefused || r.lastProgress == 0 || r.rnrUntil != 0:
		return NoAction
	case r.retriesLeft == 0:
		return GiveUp
	}
	r.sendRefused, r.refusedAt = true, now
	return NoAction
}

// WasRefused reports whether the system refused to send the current attempt.
func (r *Retry) WasRefused() bool { return r.sendRefused }

// maxBackoff is the maximum number of times the retransmission timeout doubles
// without a response. The timer may run up to four times the attribute's value
// (IBTA volume 1, 9.7.6.1.3), so that a slow peer does not cost the connection.
const maxBackoff = 2

// backedOffTimeout returns the retransmission timeout with its exponential
// backoff.
func (r *Retry) backedOffTimeout() Time { return Time(r.timeout << r.backoff) }

// OnTimer returns the action that is due at now. The caller must have handled
// all packets that arrived by now. A timeout that is noticed late by more than
// its own length shows that the process did not run, and may not have sent its
// packets. Such a timeout causes a GoBack but uses no retry, up to retry_cnt
// consecutive times (once if retry_cnt is 0). A failed peer is therefore given
// up after at most twice the number of timeouts, even by a process that always
// runs late.
func (r *Retry) OnTimer(now Time, rtt *RTT) Action {
	if r.rnrUntil != 0 {
		if now < r.rnrUntil {
			return NoAction
		}
		r.restartTimers(now, rtt)
		return GoBack
	}
	if r.sendRefused {
		if now < r.refusedAt+RefusedPause {
			return NoAction
		}
		r.retriesLeft--
		r.sendRefused, r.nakked = false, false
		r.lastProgress, r.probesSent = now, 0
		r.armProbe(now, rtt)
		return GoBack
	}
	if r.lastProgress == 0 || r.timeout == 0 {
		return NoAction
	}
	if due := r.lastProgress + r.backedOffTimeout(); now >= due {
		switch {
		case now-due > r.backedOffTimeout() && r.lateTimeouts < max(r.retryLimit, 1):
			r.lateTimeouts++
		case r.retriesLeft == 0:
			return GiveUp
		default:
			r.retriesLeft--
		}
		r.backoff = min(r.backoff+1, maxBackoff)
		r.nakked = false
		r.lastProgress = now
		r.probesSent = 0
		r.armProbe(now, rtt)
		return GoBack
	}
	if r.probeAt != 0 && now >= r.probeAt {
		r.probesSent++
		r.armProbe(now, rtt)
		r.nakked = false // the probe may draw a NAK with the same PSN
		return Probe
	}
	return NoAction
}

// OnSequenceNAK returns the action for a NAK, or a gap among responses, at psn.
// It permits one go-back per PSN until there is progress, and none during an
// RNR wait, because packets after a rejected one draw NAKs of their own. The
// timers restart with the retransmission.
func (r *Retry) OnSequenceNAK(now Time, psn wire.PSN, rtt *RTT) Action {
	if r.rnrUntil != 0 || r.nakked && r.nakPSN == psn {
		return NoAction
	}
	if r.retriesLeft == 0 {
		return GiveUp
	}
	r.retriesLeft--
	r.backoff = 0
	r.nakked, r.nakPSN, r.sendRefused = true, psn, false
	r.lastProgress = now
	r.probesSent = 0
	r.armProbe(now, rtt)
	return GoBack
}

// MaxRNRWait is the maximum RNR wait in nanoseconds for a peer that announces
// new receives by a credit update.
const MaxRNRWait = 10 * Millisecond

// OnRNR starts the RNR wait requested by an RNR NAK with the given timer code,
// or returns GiveUp if rnr_retry is exhausted. A second NAK during the wait has
// no effect. The code is a minimum. If announces is set, the peer announces new
// receives (see [Retry.EndRNRWait]), and the wait doubles each time up to
// MaxRNRWait, because the receiving application may have stopped.
func (r *Retry) OnRNR(now Time, code uint8, announces bool) Action {
	if r.rnrUntil != 0 {
		return NoAction
	}
	if r.rnrLimit != RNRForever {
		if r.rnrRetriesLeft == 0 {
			return GiveUp
		}
		r.rnrRetriesLeft--
	}
	wait := wire.RNRNanos(code)
	if announces && wait < MaxRNRWait {
		if wait <<= r.rnrDoublings; wait < MaxRNRWait {
			r.rnrDoublings++
		}
		wait = min(wait, MaxRNRWait)
	}
	r.rnrUntil = now + Time(wait)
	r.nakked, r.sendRefused = false, false
	r.backoff = 0
	r.probeAt = 0
	return GoBack
}

// EndRNRWait ends an RNR wait early because the peer has announced a receive.
// It reports whether a wait was in progress.
func (r *Retry) EndRNRWait(now Time, rtt *RTT) bool {
	if r.rnrUntil == 0 {
		return false
	}
	r.restartTimers(now, rtt)
	return true
}

// restartTimers ends the RNR wait and restarts the timers.
func (r *Retry) restartTimers(now Time, rtt *RTT) {
	r.rnrUntil = 0
	r.lastProgress = now
	r.armProbe(now, rtt)
}

// InRNRWait reports whether an RNR wait blocks the send queue.
func (r *Retry) InRNRWait() bool { return r.rnrUntil != 0 }

// RetriesUsed returns the number of retries used since the last progress.
func (r *Retry) RetriesUsed() int { return int(r.retryLimit - r.retriesLeft) }

// RNRRetriesUsed returns the number of RNR retries used since the last
// progress, 0 if they are unlimited.
func (r *Retry) RNRRetriesUsed() int { return int(r.rnrLimit - r.rnrRetriesLeft) }

// Stop clears the timers and restores the retry counters.
func (r *Retry) Stop() {
	r.lastProgress, r.probeAt, r.rnrUntil, r.rnrDoublings = 0, 0, 0, 0
	r.nakked, r.sendRefused = false, false
	r.retriesLeft, r.rnrRetriesLeft, r.backoff, r.lateTimeouts = r.retryLimit, r.rnrLimit, 0, 0
}

// A Time is a point on the adapter's monotonic clock in nanoseconds. As a
// deadline, 0 means never.
type Time int64

// Earlier returns the earlier of two deadlines.
func Earlier(a, b Time) Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Durations in nanoseconds.
const (
	Microsecond = 1000
	Millisecond = 1000 * Microsecond
)
