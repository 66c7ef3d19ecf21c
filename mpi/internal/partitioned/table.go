package partitioned

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A Table lists the partitioned sends and receives of a rank. The engine's lock guards it.
type Table struct {
	engine    *engine.Engine
	sends     map[uint64]*Send // by id
	lastID    uint64
	receives  []*Recv // those that are matched, by their first number
	unmatched map[match.Envelope]*unmatched
}

// unmatched are the offers and the receives with the same envelope that have no counterpart yet.
// One of the lists is empty.
type unmatched struct {
	offers   []offer
	receives []*Recv
}

// Limits of the memory that another rank can occupy.
const (
	maxPartitions = 1 << 24 // of a message
	maxOffers     = 1 << 16 // unmatched, of an envelope
)

// NewTable returns an empty table.
func NewTable(e *engine.Engine) *Table {
	return &Table{engine: e, sends: map[uint64]*Send{}, unmatched: map[match.Envelope]*unmatched{}}
}

// CheckPartitions returns an error if the elements of a buffer cannot be divided into partitions.
func CheckPartitions(b datatype.Buffer, partitions int) error {
	switch {
	case partitions < 1 || partitions > maxPartitions:
		return fmt.Errorf("%w: %d partitions, want 1 to %d", ErrPartition, partitions, maxPartitions)
	case b.Count()%partitions != 0:
		return fmt.Errorf("%w: %d elements in %d partitions, want a multiple", datatype.ErrCount, b.Count(), partitions)
	}
	return nil
}

// RangeError returns the error of partitions out of range.
func RangeError(from, to, partitions int) error {
	return fmt.Errorf("%w: [%d, %d), want in [0, %d)", ErrPartition, from, to, partitions)
}

// unmatchedOf returns the lists of an envelope.
func (t *Table) unmatchedOf(e match.Envelope) *unmatched {
	u := t.unmatched[e]
	if u == nil {
		u = &unmatched{}
		t.unmatched[e] = u
	}
	return u
}

// dropIfEmpty removes the lists of an envelope if they are empty.
func (t *Table) dropIfEmpty(e match.Envelope) {
	if u := t.unmatched[e]; u != nil && len(u.offers)+len(u.receives) == 0 {
		delete(t.unmatched, e)
	}
}

// HandlePacket handles an active message of PacketContext. An error is a protocol violation. The
// caller holds the engine's lock.
func (t *Table) HandlePacket(from int, h *envelope.Header, payload []byte) error {
	if packetType(h.Tag) == packetOffer {
		return t.handleOffer(from, h, payload)
	}
	s := t.sends[h.ID]
	if s == nil && h.ID != 0 && h.ID <= t.lastID {
		return nil // freed meanwhile
	}
	if s == nil || s.dest != from {
		return fmt.Errorf("%w: packet %d for unknown partitioned send %d", protocol.ErrProtocol, h.Tag, h.ID)
	}
	switch packetType(h.Tag) {
	case packetKey:
		return s.handleKey(h, payload)
	case packetStart:
		return s.handleStart()
	case packetRefuse:
		if len(payload) != envelope.SignatureSize {
			return fmt.Errorf("%w: refusal of %d bytes", protocol.ErrProtocol, len(payload))
		}
		return s.handleRefuse(h.Length, binary.LittleEndian.Uint64(payload))
	}
	return fmt.Errorf("%w: unknown packet %d of a partitioned message", protocol.ErrProtocol, h.Tag)
}

// handleOffer matches a send of another rank with the first receive of its envelope.
func (t *Table) handleOffer(from int, h *envelope.Header, payload []byte) error {
	o, e, err := parseOffer(from, h, payload)
	if err != nil {
		return err
	}
	u := t.unmatchedOf(e)
	if len(u.receives) == 0 {
		if u.offers = append(u.offers, o); len(u.offers) > maxOffers {
			return fmt.Errorf("%w: more than %d partitioned sends with tag %d without a receive", protocol.ErrProtocol, maxOffers, e.Tag)
		}
		return nil
	}
	r := u.receives[0]
	u.receives = u.receives[1:]
	t.dropIfEmpty(e)
	r.match(o)
	return nil
}

// assignNumbers gives a receive one number for each partition of its sender: the lowest that are
// free.
func (t *Table) assignNumbers(r *Recv, n int) error {
	first, at := uint64(0), 0
	for at < len(t.receives) && t.receives[at].first < first+uint64(n) {
		first = t.receives[at].first + uint64(len(t.receives[at].arrived))
		at++
	}
	if first+uint64(n) > NoticeFlag {
		return fmt.Errorf("%w: more than %d partitions in use", ErrPartition, uint32(NoticeFlag))
	}
	r.first, r.arrived = first, make([]bool, n)
	t.receives = slices.Insert(t.receives, at, r)
	return nil
}

// HandleNotify handles the notice of a partition in memory. An error is a protocol violation. The
// caller holds the engine's lock.
func (t *Table) HandleNotify(from int, notice uint32) error {
	number := uint64(notice &^ NoticeFlag)
	at, ok := slices.BinarySearchFunc(t.receives, number, func(r *Recv, number uint64) int {
		switch {
		case number < r.first:
			return 1
		case number >= r.first+uint64(len(r.arrived)):
			return -1
		}
		return 0
	})
	if !ok || t.receives[at].source != from {
		return fmt.Errorf("%w: notice of unknown partition %d", protocol.ErrProtocol, number)
	}
	return t.receives[at].arrive(int(number - t.receives[at].first))
}

// OnRankLost fails the sends and receives of a lost rank. The caller holds the engine's lock.
func (t *Table) OnRankLost(rank int) {
	err := t.engine.Core().PeerError(rank)
	for _, s := range t.sends {
		if s.dest == rank {
			s.fail(err)
		}
	}
	for _, r := range t.receives {
		if r.source == rank {
			r.fail(err)
		}
	}
	for e, u := range t.unmatched {
		if int(e.Source) == rank {
			u.offers = nil
			for _, r := range u.receives {
				r.fail(err)
			}
			t.dropIfEmpty(e)
		}
	}
}

// Stop deregisters the memory of all receives.
func (t *Table) Stop() {
	t.engine.Do(func(*protocol.Core) {
		for _, r := range t.receives {
			r.deregister()
		}
	})
}
