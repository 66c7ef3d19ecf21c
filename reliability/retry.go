package reliability

import "github.com/softrnic/softrnic/wire"

// Retry holds the timers and counters with which a requester gives packets
// another chance: the local ACK timeout with retry_cnt, the RNR wait with
// rnr_retry, and the one go-back at a time that a sequence NAK may cause.
type Retry struct {
	timeout        int64 // nanoseconds, 0: none
	retryLimit     uint8 // retry_cnt
	rnrLimit       uint8 // rnr_retry, 7: for ever
	retriesLeft    uint8
	rnrRetriesLeft uint8
	backoff        uint8 // in a row, up to maxBackoff
	lateTimeouts   uint8 // timeouts since the last progress that came too late to count

	probes         bool // ask early; only towards peers known to like it
	probesSent     uint8
	ackUnrequested bool // nothing in flight asks for an acknowledgement: it may take its time
	lastProgress   Time // last sign of progress, or the first packet in flight; 0: idle
	probeAt        Time
	rnrUntil       Time  // end of an RNR wait, 0: none
	rnrDoublings   uint8 // waits in a row, as far as each is longer than the one before

	sendRefused bool // the system did not send the current attempt ...
	refusedAt   Time // ... and this is when

	nakked bool     // a sequence NAK was answered with a go-back ...
	nakPSN wire.PSN // ... to this PSN, and no progress came since
}

// RNRForever is the rnr_retry value that never gives up.
const RNRForever = 7

// Verdict is what a requester has to do.
type Verdict uint8

const (
	Nothing Verdict = iota
	Probe           // send the oldest packet again and ask for an acknowledgement
	GoBack          // send everything again from the oldest packet
	GiveUp          // the retries are spent
)

// Configure sets the limits: timeout in nanoseconds (0: never), retry_cnt and
// rnr_retry 0..7, and whether to probe before the timeout.
func (r *Retry) Configure(timeout int64, retryCnt, rnrRetry uint8, probes bool) {
	r.timeout, r.retryLimit, r.rnrLimit = timeout, retryCnt, rnrRetry
	r.retriesLeft, r.rnrRetriesLeft = retryCnt, rnrRetry
	r.probes = probes && timeout > 0
}

// OnSent notes that packets are in flight, and whether they ask for an
// acknowledgement.
func (r *Retry) OnSent(now Time, asked bool, rtt *RTT) {
	switch {
	case r.lastProgress == 0:
		r.lastProgress, r.probesSent = now, 0
	case !asked || !r.ackUnrequested:
		return
	}
	r.ackUnrequested = !asked
	r.armProbe(now, rtt)
}

// OnProgress notes that something new was acknowledged; outstanding tells
// whether anything is left in flight, and asked whether that asks for an
// acknowledgement.
func (r *Retry) OnProgress(now Time, outstanding, asked bool, rtt *RTT) {
	r.retriesLeft, r.rnrRetriesLeft, r.backoff, r.lateTimeouts = r.retryLimit, r.rnrLimit, 0, 0
	r.nakked, r.sendRefused = false, false
	r.probesSent = 0
	r.rnrUntil, r.rnrDoublings = 0, 0
	r.lastProgress, r.probeAt = 0, 0
	if outstanding {
		r.lastProgress, r.ackUnrequested = now, !asked
		r.armProbe(now, rtt)
	}
}

// DelayedAckProbe is after how many nanoseconds a probe follows packets that asked for no
// acknowledgement. The peer has to send one well before.
const DelayedAckProbe = 12 * Millisecond

func (r *Retry) armProbe(now Time, rtt *RTT) {
	r.probeAt = 0
	after := rtt.ProbeTimeout()
	if r.ackUnrequested {
		after = max(after, DelayedAckProbe)
	}
	if after <<= r.probesSent; r.probes && after < r.timeout {
		r.probeAt = now + Time(after)
	}
}

// ProbeSent reports whether there has been a probe since the last progress.
func (r *Retry) ProbeSent() bool { return r.probesSent > 0 }

// Deadline is when Expired has to be asked next.
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
// refuses to send: the next need not wait for the timeout, and a route that flaps has
// retry_cnt times as long to come back.
const RefusedPause = 5 * Millisecond

// OnSendRefused notes that the system refused to send the current attempt, or that the
// network returned it. Each attempt counts once, whatever its number of packets, and
// uses up a retry after RefusedPause, also without a timeout. The verdict is GiveUp
// if none is left.
func (r *Retry) OnSendRefused(now Time) Verdict {
	switch {
	case r.sendRefused || r.lastProgress == 0 || r.rnrUntil != 0:
		return Nothing
	case r.retriesLeft == 0:
		return GiveUp
	}
	r.sendRefused, r.refusedAt = true, now
	return Nothing
}

// WasRefused reports whether the current attempt has been refused.
func (r *Retry) WasRefused() bool { return r.sendRefused }

// maxBackoff is how often the timeout doubles while nothing comes back. The
// timer may run up to four times as long as the attribute says (IBTA volume 1,
// 9.7.6.1.3), and a peer that is only slow must not cost the connection.
const maxBackoff = 2

func (r *Retry) backedOffTimeout() Time { return Time(r.timeout << r.backoff) }

// OnTimer tells what the passage of time calls for. The caller must have handled
// everything that had arrived by now. A timeout that is noticed late by more than its own
// length shows that the process did not run meanwhile, and perhaps sent nothing, either: it
// causes a GoBack and spends no retry, up to retry_cnt times in a row (once if that is 0). So a
// peer that is gone is given up by a process that never runs in time, too, after twice the
// number of timeouts.
func (r *Retry) OnTimer(now Time, rtt *RTT) Verdict {
	if r.rnrUntil != 0 {
		if now < r.rnrUntil {
			return Nothing
		}
		r.restartTimers(now, rtt)
		return GoBack
	}
	if r.sendRefused {
		if now < r.refusedAt+RefusedPause {
			return Nothing
		}
		r.retriesLeft--
		r.sendRefused, r.nakked = false, false
		r.lastProgress, r.probesSent = now, 0
		r.armProbe(now, rtt)
		return GoBack
	}
	if r.lastProgress == 0 || r.timeout == 0 {
		return Nothing
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
		r.nakked = false // the answer to a probe may be a NAK for the same PSN
		return Probe
	}
	return Nothing
}

// OnSequenceNAK tells what a NAK (or a gap among responses) at psn calls for:
// one go-back for each PSN until there is progress, and none during an RNR
// wait, because the packets behind a refused one draw a NAK of their own. The
// timers start anew with the packets.
func (r *Retry) OnSequenceNAK(now Time, psn wire.PSN, rtt *RTT) Verdict {
	if r.rnrUntil != 0 || r.nakked && r.nakPSN == psn {
		return Nothing
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

// MaxRNRWait is how many nanoseconds an RNR wait may become, for a peer that tells when it has
// a receive again.
const MaxRNRWait = 10 * Millisecond

// OnRNR starts the wait that an RNR NAK with this timer code asks for, or
// reports that rnr_retry is spent. A second NAK during the wait changes
// nothing. The code is the least that the peer wants: one that tells when it has a receive
// (see [Retry.EndRNRWait]) is asked half as often each time, for its reader may have stopped.
func (r *Retry) OnRNR(now Time, code uint8, tells bool) Verdict {
	if r.rnrUntil != 0 {
		return Nothing
	}
	if r.rnrLimit != RNRForever {
		if r.rnrRetriesLeft == 0 {
			return GiveUp
		}
		r.rnrRetriesLeft--
	}
	wait := wire.RNRNanos(code)
	if tells && wait < MaxRNRWait {
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

// EndRNRWait ends an RNR wait, because the peer has said that it has a receive, and reports whether
// there was one: what has been gone back to may be sent now.
func (r *Retry) EndRNRWait(now Time, rtt *RTT) bool {
	if r.rnrUntil == 0 {
		return false
	}
	r.restartTimers(now, rtt)
	return true
}

// restartTimers starts the timers anew behind an RNR wait.
func (r *Retry) restartTimers(now Time, rtt *RTT) {
	r.rnrUntil = 0
	r.lastProgress = now
	r.armProbe(now, rtt)
}

// InRNRWait reports whether an RNR wait holds the queue.
func (r *Retry) InRNRWait() bool { return r.rnrUntil != 0 }

// RetriesUsed is the number of retries used since the last progress, and RNRSpent
// the same for RNR NAKs (0 when unlimited).
func (r *Retry) RetriesUsed() int    { return int(r.retryLimit - r.retriesLeft) }
func (r *Retry) RNRRetriesUsed() int { return int(r.rnrLimit - r.rnrRetriesLeft) }

// Stop forgets everything in flight.
func (r *Retry) Stop() {
	r.lastProgress, r.probeAt, r.rnrUntil, r.rnrDoublings = 0, 0, 0, 0
	r.nakked, r.sendRefused = false, false
	r.retriesLeft, r.rnrRetriesLeft, r.backoff, r.lateTimeouts = r.retryLimit, r.rnrLimit, 0, 0
}
