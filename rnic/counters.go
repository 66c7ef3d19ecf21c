package rnic

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/qp"
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
	qp.Counters                                          // sums over all queue pairs, destroyed ones too
	Drops                              map[string]uint64 // packets dropped, by reason
	ICRCMember                         uint64            // packets whose ICRC was checked by membership only
	Events                             uint64            // asynchronous events dropped because the program did not take them
	Link                               link.Stats
	QPs, CQs, MRs, MWs, PDs, SRQs, AHs int
}

// Stats returns the device's counters.
func (d *Device) Stats() Stats {
	s := Stats{
		Drops: make(map[string]uint64), ICRCMember: d.drops.icrcMember.Load(), Events: d.events.lostEvents(),
		QPs: d.quota.inUse(kindQP), CQs: d.quota.inUse(kindCQ), MRs: d.quota.inUse(kindMR), MWs: d.quota.inUse(kindMW),
		PDs: d.quota.inUse(kindPD), SRQs: d.quota.inUse(kindSRQ), AHs: d.quota.inUse(kindAH),
	}
	for i := wire.Drop(1); i < wire.NumDrops; i++ {
		if n := d.drops.n[i].Load(); n > 0 {
			s.Drops[i.String()] = n
		}
	}
	s.Counters = d.retired.sum()
	d.qps.forEach(func(q *QP) { addCounters(&s.Counters, q.Counters()) })
	for _, sh := range d.shards {
		addFields(reflect.ValueOf(&s.Link).Elem(), reflect.ValueOf(link.StatsOf(sh.socket)))
	}
	return s
}

// retiredCounters are the sums of the counters of destroyed queue pairs.
type retiredCounters struct {
	mu    sync.Mutex
	total qp.Counters
}

func (r *retiredCounters) add(c qp.Counters) {
	r.mu.Lock()
	addCounters(&r.total, c)
	r.mu.Unlock()
}

func (r *retiredCounters) sum() qp.Counters {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

func addCounters(sum *qp.Counters, c qp.Counters) {
	addFields(reflect.ValueOf(sum).Elem(), reflect.ValueOf(c))
}

// addFields adds every uint64 field of c to the same field of sum.
func addFields(sum, c reflect.Value) {
	for i := range sum.NumField() {
		if f := sum.Field(i); f.Kind() == reflect.Uint64 {
			f.SetUint(f.Uint() + c.Field(i).Uint())
		}
	}
}

// HWCounter returns a counter by its name in QPCounters.All, such as
// "send_rnr_err" (the name in rxe, where it has one); ok is false if there is
// no such counter. Layers that only know package verbs use it if the device has
// it.
func (q *QP) HWCounter(name string) (n uint64, ok bool) {
	for info, n := range QPCounters(q.Counters()).All() {
		if info.Name == name {
			return n, true
		}
	}
	return 0, false
}
