package rnic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/qp"
)

// Counters are the counters of a device, except drops and link counters. In
// JSON they are one flat object with the names of Linux's hw_counters of
// rdma_rxe; counters that rxe lacks have the name of mlx5, if it has one.
type Counters struct {
	qp.Counters
	LinkDowned uint64
	ICRCMember uint64
	EventsLost uint64
}

// QPCounters are the counters of one queue pair: in JSON the same names as
// Counters, without those that only a device has.
type QPCounters qp.Counters

// LinkCounters are the counters of the socket. JSON names are the fields' in
// snake case.
type LinkCounters link.Stats

// FaultCounters count the effects of injected faults. JSON names are the
// fields' in snake case.
type FaultCounters struct {
	Lost, Dropped, Overflow, Duplicated, Corrupted, Delayed, Reordered, Marked uint64
}

// CounterInfo describes a counter.
type CounterInfo struct {
	Name        string // as in JSON
	Description string // a sentence
}

// counter is one row of a table of counters that are fields of T.
type counter[T any] struct {
	CounterInfo
	field func(*T) *uint64
}

// counterTable maps fields of T to names, in the order in which tools show
// them.
type counterTable[T any] []counter[T]

// all yields every counter with its value in v.
func (t counterTable[T]) all(v *T) iter.Seq2[CounterInfo, uint64] {
	return func(yield func(CounterInfo, uint64) bool) {
		for i := range t {
			if !yield(t[i].CounterInfo, *t[i].field(v)) {
				return
			}
		}
	}
}

func (t counterTable[T]) marshal(v *T) ([]byte, error) {
	b := []byte{'{'}
	for c, n := range t.all(v) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, c.Name)
		b = append(b, ':')
		b = strconv.AppendUint(b, n, 10)
	}
	return append(b, '}'), nil
}

// unmarshal ignores unknown names, so that tools can read the output of newer
// adapters.
func (t counterTable[T]) unmarshal(data []byte, v *T) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	var values map[string]uint64
	if err := json.Unmarshal(data, &values); err != nil {
		return fmt.Errorf("counters: %w", err)
	}
	for i := range t {
		*t[i].field(v) = values[t[i].Name]
	}
	return nil
}

// All yields the counters in the order of rxe, then our own.
func (c Counters) All() iter.Seq2[CounterInfo, uint64] { return deviceCounters.all(&c) }

// MarshalJSON writes an object with a member for each counter.
func (c Counters) MarshalJSON() ([]byte, error) { return deviceCounters.marshal(&c) }

// UnmarshalJSON reads the output of MarshalJSON.
func (c *Counters) UnmarshalJSON(data []byte) error { return deviceCounters.unmarshal(data, c) }

// All yields the counters in the order of rxe, then our own.
func (c QPCounters) All() iter.Seq2[CounterInfo, uint64] {
	return qpCounters.all((*qp.Counters)(&c))
}

// MarshalJSON writes an object with a member for each counter.
func (c QPCounters) MarshalJSON() ([]byte, error) { return qpCounters.marshal((*qp.Counters)(&c)) }

// UnmarshalJSON reads the output of MarshalJSON.
func (c *QPCounters) UnmarshalJSON(data []byte) error {
	return qpCounters.unmarshal(data, (*qp.Counters)(c))
}

// All yields the counters: sending, receiving, then errors.
func (c LinkCounters) All() iter.Seq2[CounterInfo, uint64] {
	return linkCounters.all((*link.Stats)(&c))
}

// MarshalJSON writes an object with a member for each counter.
func (c LinkCounters) MarshalJSON() ([]byte, error) { return linkCounters.marshal((*link.Stats)(&c)) }

// UnmarshalJSON reads the output of MarshalJSON.
func (c *LinkCounters) UnmarshalJSON(data []byte) error {
	return linkCounters.unmarshal(data, (*link.Stats)(c))
}

// All yields the counters, the most severe first.
func (c FaultCounters) All() iter.Seq2[CounterInfo, uint64] { return faultCounters.all(&c) }

// MarshalJSON writes an object with a member for each counter.
func (c FaultCounters) MarshalJSON() ([]byte, error) { return faultCounters.marshal(&c) }

// UnmarshalJSON reads the output of MarshalJSON.
func (c *FaultCounters) UnmarshalJSON(data []byte) error { return faultCounters.unmarshal(data, c) }
