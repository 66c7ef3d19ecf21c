package rdma

import "github.com/softrnic/softrnic/verbs"

// failLink ends a connection that has failed.
func (f *Fabric) failLink(l *link, cause error) {
	if l.failed {
		return
	}
	l.failed, l.up, l.cause = true, false, cause
	_ = l.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) // ends remote access
	l.failRails()
	f.removeRing(l)
	f.host.Core().FailPeer(l.rank, cause)
	f.flushPostList(l)
}

// Disconnect implements fabric.Fabric.
func (f *Fabric) Disconnect(rank int, cause error) {
	if l := f.links[rank]; l != nil && l.qp != nil {
		f.failLink(l, cause)
		return
	}
	f.links[rank] = &link{rank: rank, failed: true, cause: cause} // a dial in progress gives up
	f.host.Core().FailPeer(rank, cause)
}

// Fail fails all connections, because the shared queue delivers no completions any more.
func (f *Fabric) Fail(cause error) { f.failAll(cause) }

// failAll fails all connections.
func (f *Fabric) failAll(cause error) {
	for rank, l := range f.links {
		switch {
		case rank == f.rank:
		case l != nil && l.qp != nil:
			f.failLink(l, cause)
		default:
			f.host.Core().FailPeer(rank, cause)
		}
	}
	for i, m := range f.transfers.list { // completions may be lost; the adapter accesses no memory any more
		if m.live {
			f.finishTransfer(i, cause)
		}
	}
}
