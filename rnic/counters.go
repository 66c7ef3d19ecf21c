package rnic

import (
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/counters"
	"github.com/softrnic/softrnic/wire"
)

// dropCounters count dropped packets by reason.
type dropCounters struct {
	n          [wire.NumDrops]atomic.Uint64
	icrcMember atomic.Uint64 // packets whose ICRC is valid for an unexpected IPv4 identification
}

func (c *dropCounters) count(d wire.Drop) { c.n[d].Add(1) }

// Stats are the counters of a device since it was opened.
type Stats struct {
	Counters                           Counters
	Drops                              map[string]uint64 // packets dropped, by reason
	Link                               LinkCounters
	QPs, CQs, MRs, MWs, PDs, SRQs, AHs int // objects in use
}

// Stats returns the device's counters.
func (d *Device) Stats() Stats {
	s := Stats{
		Drops: make(map[string]uint64), Link: d.linkCounters(), Counters: d.deviceCounters(d.retired.sum()),
		QPs: d.quota.inUse(kindQP), CQs: d.quota.inUse(kindCQ), MRs: d.quota.inUse(kindMR), MWs: d.quota.inUse(kindMW),
		PDs: d.quota.inUse(kindPD), SRQs: d.quota.inUse(kindSRQ), AHs: d.quota.inUse(kindAH),
	}
	for i := wire.Drop(1); i < wire.NumDrops; i++ {
		if n := d.drops.n[i].Load(); n > 0 {
			s.Drops[i.String()] = n
		}
	}
	d.qps.forEach(func(q *queuePair) { counters.Add(&s.Counters.QPCounters, q.counters()) })
	return s
}

// deviceCounters returns the counters of the device itself with sum, those of
// queue pairs.
func (d *Device) deviceCounters(sum QPCounters) Counters {
	return Counters{
		QPCounters: sum, LinkDowned: d.linkFailures.Load(), ICRCMember: d.drops.icrcMember.Load(), EventsLost: d.events.lostEvents(),
	}
}

// retiredCounters are the sums of the counters of closed queue pairs.
type retiredCounters struct {
	mu    sync.Mutex
	total QPCounters
}

func (r *retiredCounters) add(c QPCounters) {
	r.mu.Lock()
	counters.Add(&r.total, c)
	r.mu.Unlock()
}

func (r *retiredCounters) sum() QPCounters {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// HWCounter returns a counter by its name in QPCounters.All, such as
// "send_rnr_err" (the name in rxe, where it has one); ok is false if there is
// no such counter. Layers that only know package verbs use it if the device has
// it.
func (q *queuePair) HWCounter(name string) (n uint64, ok bool) {
	for have, n := range q.counters().All() {
		if have == name {
			return n, true
		}
	}
	return 0, false
}
