package protocol

import (
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// oracle is MPI's matching at one rank, with two lists, without optimizations: it determines the
// message of each receive.
type oracle struct {
	posted     []*recv
	unexpected []*sent
	next       []int                   // by source: the next message
	come       []map[int]envelope.Kind // and those that arrived out of order
	active     []*sent                 // for Core.Handler
	lost       []bool
}

func newOracle(n int) oracle {
	o := oracle{next: make([]int, n), come: make([]map[int]envelope.Kind, n), lost: make([]bool, n)}
	for i := range o.come {
		o.come[i] = make(map[int]envelope.Kind)
	}
	return o
}

func matches(e match.Envelope, m *sent) bool {
	return e.Context == m.e.Context && (e.Source == -1 || e.Source == m.e.Source) && (e.Tag == -1 || e.Tag == m.e.Tag)
}

// packet records the arrival of the first packet of a rank's message number i. all are the messages
// of the rank, in order.
func (o *oracle) packet(from, i int, kind envelope.Kind, all []*sent) {
	o.come[from][i] = kind
	for {
		i := o.next[from]
		kind, ok := o.come[from][i]
		if !ok {
			return
		}
		o.next[from]++
		all[i].kind = kind
		o.deliver(all[i])
	}
}

// deliver delivers a message to the first matching receive.
func (o *oracle) deliver(m *sent) {
	if m.active {
		o.active = append(o.active, m)
		return
	}
	for i, r := range o.posted {
		if matches(r.r.Envelope, m) {
			o.posted = slices.Delete(o.posted, i, i+1)
			r.m, m.at = m, r
			return
		}
	}
	o.unexpected = append(o.unexpected, m)
}

// find returns the first message that matches a receive, or nil.
func (o *oracle) find(e match.Envelope, take bool) *sent {
	for i, m := range o.unexpected {
		if matches(e, m) {
			if take {
				o.unexpected = slices.Delete(o.unexpected, i, i+1)
			}
			return m
		}
	}
	return nil
}

// receive posts a receive.
func (o *oracle) receive(r *recv) {
	if m := o.find(r.r.Envelope, true); m != nil {
		r.m, m.at = m, r
	} else if o.hopeless(r) {
		r.doomed = true
	} else {
		o.posted = append(o.posted, r)
	}
}

func (o *oracle) hopeless(r *recv) bool {
	for rank, lost := range o.lost {
		if lost && (int(r.r.Envelope.Source) == rank || r.r.Envelope.Source == -1 && (r.r.Sources == nil || slices.Contains(r.r.Sources, rank))) {
			return true
		}
	}
	return false
}

// failRank marks a rank as lost: receives from it fail, and its announced messages are removed.
func (o *oracle) failRank(rank int) {
	o.lost[rank] = true
	for _, r := range o.posted {
		r.doomed = o.hopeless(r)
	}
	o.posted = slices.DeleteFunc(o.posted, func(r *recv) bool { return r.doomed })
	o.unexpected = slices.DeleteFunc(o.unexpected, func(m *sent) bool {
		return int(m.e.Source) == rank && m.kind == envelope.RTS
	})
}

// cancel cancels a receive, and reports whether it had no message.
func (o *oracle) cancel(r *recv) bool {
	i := slices.Index(o.posted, r)
	if i >= 0 {
		o.posted = slices.Delete(o.posted, i, i+1)
	}
	return i >= 0
}
