package rdma

import "github.com/softrnic/softrnic/verbs"

// Transfers in a row, as short packets do, leave together: all but the first are
// posted in one call. They leave when there are many, when a packet goes the same
// way, when the program waits for something or looks, and after batchTime at the
// latest.

// maxPostList is how many leave together at most.
const maxPostList = 16

// postList is what waits to be posted together.
type postList struct {
	n      int
	wrs    [maxPostList]verbs.SendWR
	sges   [maxPostList][1]verbs.SGE
	inline [maxPostList][inlineMax]byte
	moves  [maxPostList]int
}

// enqueueTransfer puts a transfer to those that leave together, and reports whether it did.
func (f *Fabric) enqueueTransfer(l *link, wr *verbs.SendWR, move int) bool {
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
	q.moves[i] = move
	l.posted++
	if q.n++; q.n == 1 {
		f.timer.Reset(batchTime)
	} else if q.n == maxPostList {
		f.flushPostList(l)
	}
	return true
}

// flushPostList posts what leaves together. What cannot be posted has failed.
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
	for _, move := range q.moves[done:n] {
		f.finishTransfer(move, l.cause)
	}
}
