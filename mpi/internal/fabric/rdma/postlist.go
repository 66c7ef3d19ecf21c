package rdma

import "github.com/softrnic/softrnic/verbs"

// Consecutive transfers, like short packets, are coalesced: all except the first are posted in one call. The list is posted when
// it is full, before a packet on the same connection, when the program waits or polls, and after batchTime at the latest.

// maxPostList is the maximum length of a post list.
const maxPostList = 16

// A postList is a list of work requests to be posted together.
type postList struct {
	n           int
	wrs         [maxPostList]verbs.SendWR
	sges        [maxPostList][1]verbs.SGE
	inline      [maxPostList][inlineMax]byte
	transferIDs [maxPostList]int
}

// enqueueTransfer appends a transfer to the post list, and reports whether it did.
func (f *Fabric) enqueueTransfer(l *link, wr *verbs.SendWR, transferID int) bool {
	if l.recent == 0 {
		return false
	}
	if l.list == nil {
		l.list = &postList{}
	}
	q := l.list
	i := q.n
	q.wrs[i] = *wr
	q.wrs[i].InlineData = q.inline[i][:copy(q.inline[i][:], wr.InlineData)]
	if len(wr.SGList) > 0 {
		q.sges[i][0] = wr.SGList[0]
		q.wrs[i].SGList = q.sges[i][:]
	}
	q.transferIDs[i] = transferID
	l.posted++
	if q.n++; q.n == 1 {
		f.timer.Reset(batchTime)
	} else if q.n == maxPostList {
		f.flushPostList(l)
	}
	return true
}

// flushPostList posts the list. Transfers that cannot be posted fail.
func (f *Fabric) flushPostList(l *link) {
	q := l.list
	if q == nil || q.n == 0 {
		return
	}
	n := q.n
	q.n = 0
	done := 0
	if !l.failed {
		var err error
		if done, err = l.qp.PostSend(q.wrs[:n]); err != nil {
			f.failLink(l, err)
		} else {
			done = n
		}
	}
	for _, transferID := range q.transferIDs[done:n] {
		f.finishTransfer(transferID, l.cause)
	}
}
