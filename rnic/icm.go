package rnic

import (
	"fmt"
	"slices"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// ICM models a limit that adapters in hardware have and this one has not: they
// keep the contexts of queue pairs in the host's memory (Mellanox: InfiniHost
// context memory) and a few of them in a cache on the board. Whoever works
// with more queue pairs than fit pays for fetching a context with almost every
// message. The zero value is no limit and costs nothing.
//
// A context is needed to post a send and to handle an arriving packet. The
// least recently used one makes way. Each shard has a cache of its own.
type ICM struct {
	Entries     int           // contexts that fit, 1 to 4096; 0 means 32
	MissPenalty time.Duration // time that fetching one takes, spent by waiting busily; 0 switches the model off
}

const (
	icmEntries    = 32
	maxICMEntries = 4096
)

// validate refuses what makes no sense with a device whose clock is given.
func (m ICM) validate(clock func() int64) error {
	refuse := func(detail string) error {
		return &verbs.OpError{Op: "open device", Err: verbs.ErrInvalid, Detail: detail}
	}
	switch {
	case m.Entries < 0 || m.Entries > maxICMEntries || m.MissPenalty < 0:
		return refuse(fmt.Sprintf("ICM has %d entries and a penalty of %v; give 1 to %d entries (0 means %d) and no negative time",
			m.Entries, m.MissPenalty, maxICMEntries, icmEntries))
	case m.MissPenalty > 0 && clock != nil:
		return refuse("ICM waits busily for its penalty, and a clock of your own does not go on meanwhile; leave Clock out")
	}
	return nil
}

// icmCache is the cache of one shard, guarded by its lock.
type icmCache struct {
	recent  []uint32 // numbers of the queue pairs whose contexts are there, the last used first; full at its capacity
	penalty int64    // nanoseconds
	clock   func() int64
}

// newICMCache returns nil if the model is off.
func newICMCache(m ICM, clock func() int64) *icmCache {
	if m.MissPenalty == 0 {
		return nil
	}
	setDefault(&m.Entries, icmEntries)
	return &icmCache{recent: make([]uint32, 0, m.Entries), penalty: int64(m.MissPenalty), clock: clock}
}

// loadContext brings a queue pair's context into the cache and takes the time for it.
func (c *icmCache) loadContext(qpn uint32) {
	if !c.markUsed(qpn) {
		return
	}
	for till := c.clock() + c.penalty; c.clock() < till; {
	}
}

// markUsed makes qpn the last used and reports whether it was missing.
func (c *icmCache) markUsed(qpn uint32) (miss bool) {
	i := slices.Index(c.recent, qpn)
	if miss = i < 0; miss {
		if len(c.recent) < cap(c.recent) {
			c.recent = append(c.recent, qpn)
		}
		i = len(c.recent) - 1
	}
	copy(c.recent[1:], c.recent[:i])
	c.recent[0] = qpn
	return miss
}
