package rdma

import "github.com/softrnic/softrnic/verbs"

// lose ends a connection that has failed.
func (f *Fabric) lose(l *link, why error) {
	if l.down {
		return
	}
	l.down, l.up, l.why = true, false, why
	_ = l.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) // the rank reads and writes nothing any more
	l.tear()
	f.withdraw(l)
	f.host.Core().FailPeer(l.rank, why)
	f.postList(l)
}

// Cut implements fabric.Fabric.
func (f *Fabric) Cut(rank int, why error) {
	if l := f.links[rank]; l != nil && l.qp != nil {
		f.lose(l, why)
		return
	}
	f.links[rank] = &link{rank: rank, down: true, why: why} // who dials gives up
	f.host.Core().FailPeer(rank, why)
}

// Fail ends them all: nothing comes out of Options.Queue any more.
func (f *Fabric) Fail(why error) { f.fail(why) }

// fail ends them all.
func (f *Fabric) fail(why error) {
	for rank, l := range f.links {
		switch {
		case rank == f.rank:
		case l != nil && l.qp != nil:
			f.lose(l, why)
		default:
			f.host.Core().FailPeer(rank, why)
		}
	}
	for i, m := range f.moves.list { // whose completions may be lost; nothing is moved any more
		if m.live {
			f.moved(i, why)
		}
	}
}
