package impair

import "sync/atomic"

// Counts are the counters of a link since it was opened, and of its rules since
// they were set.
type Counts struct {
	Lost       uint64 // by Spec.Loss
	Dropped    uint64 // by rules
	Overflow   uint64 // dropped because Spec.Limit packets were delayed already
	Duplicated uint64 // copies made, by the Spec or by rules
	Corrupted  uint64
	Delayed    uint64 // delayed, for any reason
	Reordered  uint64 // sent without the delay by Spec.Reorder
	Marked     uint64 // Congestion Experienced
	Held       int    // packets delayed at present
	Rules      []RuleCount
}

// A RuleCount counts the packets of one rule.
type RuleCount struct {
	Rule    Rule
	Matched uint64 // packets that match
	Applied uint64 // matching packets selected by When
}

// counters are the Counts in atomic form.
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
