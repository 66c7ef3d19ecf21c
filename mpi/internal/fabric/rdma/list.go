package rdma

import "github.com/softrnic/softrnic/verbs"

// Transfers in a row, as short packets do, leave together: all but the first are
// posted in one call. They leave when there are many, when a packet goes the same
// way, when the program waits for something or looks, and after batchTime at the
// latest.

// listMax is how many leave together at most.
const listMax = 16

// list is what waits to be posted together.
type list struct {
	n      int
	wrs    [listMax]verbs.SendWR
	sges   [listMax][1]verbs.SGE
	inline [listMax][inlineMax]byte
	moves  [listMax]int
}

// enlist puts a transfer to those that leave together, and reports whether it did.
func (f *Fabric) enlist(l *link, wr *verbs.SendWR, move int) bool {
	if l.recent == 0 {
		return false
	}
	if l.list == nil {
		l.list = &list{}
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
	} else if q.n == listMax {
		f.postList(l)
	}
	return true
}

// postList posts what leaves together. What cannot be posted has failed.
func (f *Fabric) postList(l *link) {
	q := l.list
	if q == nil || q.n == 0 {
		return
	}
	n := q.n
	q.n = 0
	done := 0
	if !l.down {
		var err error
		if done, err = l.qp.PostSend(q.wrs[:n]); err != nil {
			f.lose(l, err)
		} else {
			done = n
		}
	}
	for _, move := range q.moves[done:n] {
		f.moved(move, l.why)
	}
}
