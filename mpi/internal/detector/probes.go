package detector

import (
	"time"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A rank that waits for a message sends nothing and would not notice that the sender has failed.
// So the detector sends a liveness probe to the ranks that are waited for: the adapter or the
// system of that rank must acknowledge the probe, also while the program computes, or the
// connection fails.

// maxProbes is the maximum number of probes of one wait, or of all polls, in a sample.
const maxProbes = 32

// probeSchedule is the schedule of the liveness probes of a wait.
type probeSchedule struct {
	last     time.Time
	interval time.Duration // time to the next probes
	next     int           // index of the next rank to probe
}

// probeRanks sends liveness probes to the ranks that a call waits for, with exponentially
// growing intervals.
func (r *rank) probeRanks(core *protocol.Core, x *probeSchedule, h envelope.Header, payload []byte, ranks []int, now time.Time) {
	h.Tag = deadlock.PacketProbe
	for range min(len(ranks), maxProbes) {
		to := ranks[x.next%len(ranks)]
		if x.next++; to != r.engine.Rank() && core.Backlog(to) == 0 {
			r.SendPacket(core, to, h, payload)
		}
	}
	x.last = now
	if x.next >= len(ranks) { // all of them
		x.next = 0
		x.interval = min(2*x.interval, r.MaxProbeInterval)
	}
}
