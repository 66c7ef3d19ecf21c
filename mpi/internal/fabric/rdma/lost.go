package rdma

import "github.com/softrnic/softrnic/verbs"

// failLink ends a connection that has failed.
func (f *Fabric) failLink(l *link, why error) {
	if l.failed {
		return
	}
	l.failed, l.up, l.cause = true, false, why
	_ = l.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) // ends remote access
	l.failRails()
	f.removeRing(l)
	f.host.Core().FailPeer(l.rank, why)
	f.flushPostList(l)
}

// Disconnect implements fabric.Fabric.
func (f *Fabric) Disconnect(rank int, why error) {
	if l := f.links[rank]; l != nil && l.qp != nil {
		f.failLink(l, why)
		return
	}
	f.links[rank] = &link{rank: rank, failed: true, cause: why} // a dial in progress gives up
	f.host.Core().FailPeer(rank, why)
}

// Fail fails all connections, because the shared queue delivers no completions any more.
func (f *Fabric) Fail(why error) { f.failAll(why) }

// failAll fails all connections.
func (f *Fabric) failAll(why error) {
	for rank, l := range f.links {
		switch {
		case rank == f.rank:
		case l != nil && l.qp != nil:
			f.failLink(l, why)
		default:
			f.host.Core().FailPeer(rank, why)
		}
	}
	for i, m := range f.transfers.list { // completions may be lost; the adapter accesses no memory any more
		if m.live {
			f.finishTransfer(i, why)
		}
	}
}
