package reliability

import "github.com/softrnic/softrnic/wire"

// Retry holds the timers and counters with which a requester gives packets
// another chance: the local ACK timeout with retry_cnt, the RNR wait with
// rnr_retry, and the one go-back at a time that a sequence NAK may cause.
type Retry struct {
	timeout  int64 // nanoseconds, 0: none
	limit    uint8 // retry_cnt
	rnrLimit uint8 // rnr_retry, 7: for ever
	left     uint8
	rnrLeft  uint8
	timeouts uint8 // in a row, up to maxBackoff
	excused  uint8 // timeouts since the last progress that came too late to count

	probes   bool // ask early; only towards peers known to like it
	probed   uint8
	lazy     bool // nothing in flight asks for an acknowledgement: it may take its time
	progress Time // last sign of progress, or the first packet in flight; 0: idle
	probe    Time
	rnr      Time  // end of an RNR wait, 0: none
	rnrs     uint8 // waits in a row, as far as each is longer than the one before

	refused   bool // the system did not send the current attempt ...
	refusedAt Time // ... and this is when

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
	r.timeout, r.limit, r.rnrLimit = timeout, retryCnt, rnrRetry
	r.left, r.rnrLeft = retryCnt, rnrRetry
	r.probes = probes && timeout > 0
}

// Sent notes that packets are in flight, and whether they ask for an
// acknowledgement.
func (r *Retry) Sent(now Time, asked bool, rtt *RTT) {
	switch {
	case r.progress == 0:
		r.progress, r.probed = now, 0
	case !asked || !r.lazy:
		return
	}
	r.lazy = !asked
	r.armProbe(now, rtt)
}

// Progress notes that something new was acknowledged; outstanding tells
// whether anything is left in flight, and asked whether that asks for an
// acknowledgement.
func (r *Retry) Progress(now Time, outstanding, asked bool, rtt *RTT) {
	r.left, r.rnrLeft, r.timeouts, r.excused = r.limit, r.rnrLimit, 0, 0
	r.nakked, r.refused = false, false
	r.probed = 0
	r.rnr, r.rnrs = 0, 0
	r.progress, r.probe = 0, 0
	if outstanding {
		r.progress, r.lazy = now, !asked
		r.armProbe(now, rtt)
	}
}

// LazyProbe is after how many nanoseconds a probe follows packets that asked for no
// acknowledgement. The peer has to send one well before.
const LazyProbe = 12 * Millisecond

func (r *Retry) armProbe(now Time, rtt *RTT) {
	r.probe = 0
	after := rtt.ProbeAfter()
	if r.lazy {
		after = max(after, LazyProbe)
	}
	if after <<= r.probed; r.probes && after < r.timeout {
		r.probe = now + Time(after)
	}
}

// Probed reports whether there has been a probe since the last progress.
func (r *Retry) Probed() bool { return r.probed > 0 }

// Deadline is when Expired has to be asked next.
func (r *Retry) Deadline() Time {
	if r.rnr != 0 {
		return r.rnr
	}
	if r.refused {
		return r.refusedAt + RefusedPause
	}
	if r.progress == 0 || r.timeout == 0 {
		return 0
	}
	return Earlier(r.progress+r.patience(), r.probe)
}

// RefusedPause is the number of nanoseconds between attempts that the system
// refuses to send: the next need not wait for the timeout, and a route that flaps has
// retry_cnt times as long to come back.
const RefusedPause = 5 * Millisecond

// Refused notes that the system refused to send the current attempt, or that the
// network returned it. Each attempt counts once, whatever its number of packets, and
// uses up a retry after RefusedPause, also without a timeout. The verdict is GiveUp
// if none is left.
func (r *Retry) Refused(now Time) Verdict {
	switch {
	case r.refused || r.progress == 0 || r.rnr != 0:
		return Nothing
	case r.left == 0:
		return GiveUp
	}
	r.refused, r.refusedAt = true, now
	return Nothing
}

// WasRefused reports whether the current attempt has been refused.
func (r *Retry) WasRefused() bool { return r.refused }

// maxBackoff is how often the timeout doubles while nothing comes back. The
// timer may run up to four times as long as the attribute says (IBTA volume 1,
// 9.7.6.1.3), and a peer that is only slow must not cost the connection.
const maxBackoff = 2

func (r *Retry) patience() Time { return Time(r.timeout << r.timeouts) }

// Expired tells what the passage of time calls for. The caller must have handled
// everything that had arrived by now. A timeout that is noticed late by more than its own
// length shows that the process did not run meanwhile, and perhaps sent nothing, either: it
// causes a GoBack and spends no retry, up to retry_cnt times in a row (once if that is 0). So a
// peer that is gone is given up by a process that never runs in time, too, after twice the
// number of timeouts.
func (r *Retry) Expired(now Time, rtt *RTT) Verdict {
	if r.rnr != 0 {
		if now < r.rnr {
			return Nothing
		}
		r.resume(now, rtt)
		return GoBack
	}
	if r.refused {
		if now < r.refusedAt+RefusedPause {
			return Nothing
		}
		r.left--
		r.refused, r.nakked = false, false
		r.progress, r.probed = now, 0
		r.armProbe(now, rtt)
		return GoBack
	}
	if r.progress == 0 || r.timeout == 0 {
		return Nothing
	}
	if due := r.progress + r.patience(); now >= due {
		switch {
		case now-due > r.patience() && r.excused < max(r.limit, 1):
			r.excused++
		case r.left == 0:
			return GiveUp
		default:
			r.left--
		}
		r.timeouts = min(r.timeouts+1, maxBackoff)
		r.nakked = false
		r.progress = now
		r.probed = 0
		r.armProbe(now, rtt)
		return GoBack
	}
	if r.probe != 0 && now >= r.probe {
		r.probed++
		r.armProbe(now, rtt)
		r.nakked = false // the answer to a probe may be a NAK for the same PSN
		return Probe
	}
	return Nothing
}

// SequenceNAK tells what a NAK (or a gap among responses) at psn calls for:
// one go-back for each PSN until there is progress, and none during an RNR
// wait, because the packets behind a refused one draw a NAK of their own. The
// timers start anew with the packets.
func (r *Retry) SequenceNAK(now Time, psn wire.PSN, rtt *RTT) Verdict {
	if r.rnr != 0 || r.nakked && r.nakPSN == psn {
		return Nothing
	}
	if r.left == 0 {
		return GiveUp
	}
	r.left--
	r.timeouts = 0
	r.nakked, r.nakPSN, r.refused = true, psn, false
	r.progress = now
	r.probed = 0
	r.armProbe(now, rtt)
	return GoBack
}

// RNRLong is how many nanoseconds an RNR wait may become, for a peer that tells when it has
// a receive again.
const RNRLong = 10 * Millisecond

// RNR starts the wait that an RNR NAK with this timer code asks for, or
// reports that rnr_retry is spent. A second NAK during the wait changes
// nothing. The code is the least that the peer wants: one that tells when it has a receive
// (see [Retry.Ready]) is asked half as often each time, for its reader may have stopped.
func (r *Retry) RNR(now Time, code uint8, tells bool) Verdict {
	if r.rnr != 0 {
		return Nothing
	}
	if r.rnrLimit != RNRForever {
		if r.rnrLeft == 0 {
			return GiveUp
		}
		r.rnrLeft--
	}
	wait := wire.RNRNanos(code)
	if tells && wait < RNRLong {
		if wait <<= r.rnrs; wait < RNRLong {
			r.rnrs++
		}
		wait = min(wait, RNRLong)
	}
	r.rnr = now + Time(wait)
	r.nakked, r.refused = false, false
	r.timeouts = 0
	r.probe = 0
	return GoBack
}

// Ready ends an RNR wait, because the peer has said that it has a receive, and reports whether
// there was one: what has been gone back to may be sent now.
func (r *Retry) Ready(now Time, rtt *RTT) bool {
	if r.rnr == 0 {
		return false
	}
	r.resume(now, rtt)
	return true
}

// resume starts the timers anew behind an RNR wait.
func (r *Retry) resume(now Time, rtt *RTT) {
	r.rnr = 0
	r.progress = now
	r.armProbe(now, rtt)
}

// Waiting reports whether an RNR wait holds the queue.
func (r *Retry) Waiting() bool { return r.rnr != 0 }

// Spent is the number of retries used since the last progress, and RNRSpent
// the same for RNR NAKs (0 when unlimited).
func (r *Retry) Spent() int    { return int(r.limit - r.left) }
func (r *Retry) RNRSpent() int { return int(r.rnrLimit - r.rnrLeft) }

// Stop forgets everything in flight.
func (r *Retry) Stop() {
	r.progress, r.probe, r.rnr, r.rnrs = 0, 0, 0, 0
	r.nakked, r.refused = false, false
	r.left, r.rnrLeft, r.timeouts, r.excused = r.limit, r.rnrLimit, 0, 0
}
