package rnic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/verbs"
)

// ICM models a limit of hardware adapters: they keep the contexts of queue
// pairs in the host's memory (Mellanox: InfiniHost context memory) and cache a
// few of them on the board. With more active queue pairs than cache entries,
// almost every message fetches a context. The zero value disables the model and
// costs nothing.
//
// A context is needed to post a send and to handle an arriving packet. The
// cache replaces the least recently used entry. Each shard has a cache of its
// own.
type ICM struct {
	Entries     int           // contexts that fit, 1 to 4096; 0 means 32
	MissPenalty time.Duration // time to fetch a context, spent busy waiting; 0 disables the model
}

const (
	icmEntries    = 32
	maxICMEntries = 4096
)

// parseICM parses "entries,penalty", such as "32,1us". "off" disables the model.
func parseICM(s string) (m ICM, err error) {
	if s == "off" {
		return ICM{}, nil
	}
	entries, penalty, _ := strings.Cut(s, ",")
	if m.Entries, err = strconv.Atoi(entries); err == nil {
		m.MissPenalty, err = time.ParseDuration(penalty)
	}
	if err != nil || m.Entries < 1 || m.MissPenalty <= 0 {
		return ICM{}, fmt.Errorf("%.80q is not a number of entries and a penalty, such as 32,1us", s)
	}
	return m, nil
}

// validate returns ErrInvalid for values out of range, or for a model combined
// with a clock of the caller.
func (m ICM) validate(hooks *rnichook.Hooks) error {
	refuse := func(detail string) error {
		return &verbs.OpError{Op: "open device", Err: verbs.ErrInvalid, Detail: detail}
	}
	switch {
	case m.Entries < 0 || m.Entries > maxICMEntries:
		return refuse(fmt.Sprintf("Options.ICM.Entries: %d out of range [0, %d]", m.Entries, maxICMEntries))
	case m.MissPenalty < 0:
		return refuse(fmt.Sprintf("Options.ICM.MissPenalty: %v is negative", m.MissPenalty))
	case m.MissPenalty > 0 && hooks.Clock != nil && hooks.Stall == nil:
		return refuse("ICM spins for its penalty, and the clock of a test does not advance meanwhile")
	}
	return nil
}

// An icmCache is the cache of one shard, guarded by its lock.
type icmCache struct {
	recent  []uint32 // numbers of the cached queue pairs, most recently used first; full at its capacity
	penalty int64    // nanoseconds
	clock   func() int64
	stall   func(ns int64) // replaces busy waiting, if not nil
}

// newICMCache returns nil if the model is off.
func newICMCache(m ICM, clock func() int64) *icmCache {
	if m.MissPenalty == 0 {
		return nil
	}
	setDefault(&m.Entries, icmEntries)
	return &icmCache{recent: make([]uint32, 0, m.Entries), penalty: int64(m.MissPenalty), clock: clock}
}

// loadContext loads a queue pair's context and, on a miss, waits for the
// penalty.
func (c *icmCache) loadContext(qpn uint32) {
	if !c.markUsed(qpn) {
		return
	}
	if c.stall != nil {
		c.stall(c.penalty)
		return
	}
	for till := c.clock() + c.penalty; c.clock() < till; {
	}
}

// markUsed makes qpn the most recently used entry and reports a miss.
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
