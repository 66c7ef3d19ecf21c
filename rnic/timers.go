package rnic

import (
	"container/heap"

	"github.com/softrnic/softrnic/reliability"
)

// A timerQueue is a heap of the deadlines of a shard's queue pairs, at most one
// entry for each. An entry whose deadline moves later stays and is corrected
// when it comes up, so that acknowledgements, which postpone it, cost nothing.
type timerQueue struct {
	heap timerHeap
}

// schedule makes q due at its deadline at the latest; 0 is no deadline.
func (t *timerQueue) schedule(q *queuePair, deadline reliability.Time) {
	if deadline == 0 || q.timerAt != 0 && q.timerAt <= deadline {
		return
	}
	if q.timerAt == 0 {
		q.timerAt = deadline
		heap.Push(&t.heap, q)
		return
	}
	q.timerAt = deadline
	heap.Fix(&t.heap, q.timerIndex)
}

// nextDeadline returns the earliest entry's time, or 0.
func (t *timerQueue) nextDeadline() reliability.Time {
	if len(t.heap) == 0 {
		return 0
	}
	return t.heap[0].timerAt
}

// popDue removes and returns a queue pair that is due by now, or nil.
func (t *timerQueue) popDue(now reliability.Time) *queuePair {
	if len(t.heap) == 0 || t.heap[0].timerAt > now {
		return nil
	}
	q := t.heap[0]
	heap.Pop(&t.heap)
	return q
}

// remove removes q.
func (t *timerQueue) remove(q *queuePair) {
	if q.timerAt != 0 {
		heap.Remove(&t.heap, q.timerIndex)
	}
}

type timerHeap []*queuePair

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].timerAt < h[j].timerAt }

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].timerIndex, h[j].timerIndex = i, j
}

func (h *timerHeap) Push(x any) {
	q := x.(*queuePair)
	q.timerIndex = len(*h)
	*h = append(*h, q)
}

func (h *timerHeap) Pop() any {
	old := *h
	q := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	q.timerAt = 0
	return q
}
