package impair

import "sync/atomic"

// Counts tells what a link has done to its packets since it was opened, and
// what its present rules did since they were set.
type Counts struct {
	Lost       uint64 // by Spec.Loss
	Dropped    uint64 // by rules
	Overflow   uint64 // dropped because Spec.Limit packets were held back already
	Duplicated uint64 // copies made, by the Spec or by rules
	Corrupted  uint64
	Delayed    uint64 // held back, for whatever reason
	Reordered  uint64 // sent without the delay by Spec.Reorder
	Marked     uint64 // Congestion Experienced
	Held       int    // packets held back at present
	Rules      []RuleCount
}

// RuleCount tells what became of one rule.
type RuleCount struct {
	Rule    Rule
	Matched uint64 // packets that Match describes
	Applied uint64 // those of them that When chose
}

// counters are the counts of a link while they change.
type counters struct {
	lost, dropped, overflow, duplicated, corrupted, delayed, reordered, marked atomic.Uint64
}

func (c *counters) snapshot() Counts {
	return Counts{
		Lost:       c.lost.Load(),
		Dropped:    c.dropped.Load(),
		Overflow:   c.overflow.Load(),
		Duplicated: c.duplicated.Load(),
		Corrupted:  c.corrupted.Load(),
		Delayed:    c.delayed.Load(),
		Reordered:  c.reordered.Load(),
		Marked:     c.marked.Load(),
	}
}
