package rdma

import (
	"time"

	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// A rank without credits, or without free bytes in the ring of another, may have nothing in flight to it. Then no missing
// acknowledgement shows that the other has failed, and a liveness probe of the detector would wait behind the packets. So a write
// of no bytes, which needs no receive, probes the adapter of the other rank while packets wait.

// probeInterval is the time between two probes of a rank.
const probeInterval = time.Second

// waitForRoom notes that packets of the core, or held-back bytes, wait for the rank.
func (f *Fabric) waitForRoom(l *link) {
	l.coreWaiting = true
	f.startProbes()
}

// startProbes makes probeRanks run, unless it will.
func (f *Fabric) startProbes() {
	if f.probing {
		return
	}
	f.probing = true
	if f.probeTimer == nil {
		f.probeTimer = vtime.AfterFunc(probeInterval, func() { f.host.Do(func(*protocol.Core) { f.probeRanks() }) })
	} else {
		f.probeTimer.Reset(probeInterval)
	}
}

// probeRanks probes the ranks that packets wait for.
func (f *Fabric) probeRanks() {
	f.probing = false
	for _, l := range f.links {
		if f.closed || l == nil || !l.up || !l.coreWaiting && (l.stream == nil || !l.stream.blocked) {
			continue
		}
		f.startProbes()
		if l.probed || l.freeSendSlots() == 0 {
			continue
		}
		f.wr[0] = verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, WRID: l.nextWRID(wrProbe, 0)}
		l.probed = f.postWR(l)
	}
}
