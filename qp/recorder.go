package qp

import (
	"fmt"

	"github.com/softrnic/softrnic/iwarp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A flightRecorder is the flight recorder of a queue pair: a ring of its last packets
// and state transitions. Memory is allocated with the first record.
type flightRecorder struct {
	ring []record
	next uint32 // total number of records
}

// maxRecords is the number of records kept, a power of two.
const maxRecords = 32

type record struct {
	at   reliability.Time
	psn  wire.PSN
	op   wire.Opcode
	aux  uint8 // AETH syndrome, or state
	kind recordKind
}

type recordKind uint8

const (
	recordIn recordKind = iota
	recordOut
	recordState
	recordWaiter
	recordRate
	recordSegmentIn
	recordSegmentOut
)

func (r *flightRecorder) addRecord(e record) {
	if len(r.ring) < maxRecords && r.next == uint32(len(r.ring)) {
		r.ring = append(r.ring, e)
	} else {
		r.ring[r.next%maxRecords] = e
	}
	r.next++
}

func (r *flightRecorder) addPacket(now reliability.Time, out bool, op wire.Opcode, psn wire.PSN, syndrome uint8) {
	k := recordIn
	if out {
		k = recordOut
	}
	r.addRecord(record{at: now, psn: psn, op: op, aux: syndrome, kind: k})
}

func (r *flightRecorder) addState(now reliability.Time, s verbs.QPState) {
	r.addRecord(record{at: now, aux: uint8(s), kind: recordState})
}

// RecordWaiter records that the application waits for a completion although
// none can arrive.
func (c *Core) RecordWaiter(now reliability.Time) {
	c.recorder.addRecord(record{at: now, kind: recordWaiter})
}

// A Record is one entry of a flight recorder.
type Record struct {
	At   reliability.Time // on the adapter's clock, nanoseconds
	Text string           // "-> RC_SEND_ONLY psn 7", "<- RC_ACKNOWLEDGE psn 7 ACK", "state RTS"
}

// Records returns the recorded entries, oldest first.
func (c *Core) Records() []Record {
	r := &c.recorder
	n := uint32(len(r.ring))
	out := make([]Record, 0, n)
	for i := r.next - n; i != r.next; i++ {
		e := r.ring[i%maxRecords]
		out = append(out, Record{At: e.at, Text: e.String()})
	}
	return out
}

func (e record) String() string {
	if e.kind == recordWaiter {
		return "a goroutine waits on a completion queue into which nothing can complete"
	}
	if e.kind == recordRate {
		return fmt.Sprintf("rate %s after %s", formatRate(uint32(e.psn)), reductionCauses[e.aux])
	}
	if e.kind == recordState {
		return "state " + verbs.QPState(e.aux).String()
	}
	if e.kind == recordSegmentIn || e.kind == recordSegmentOut {
		return fmt.Sprintf("%s %v msn %d", map[recordKind]string{recordSegmentIn: "<-", recordSegmentOut: "->"}[e.kind], iwarp.Opcode(e.op), e.psn)
	}
	dir := "<-"
	if e.kind == recordOut {
		dir = "->"
	}
	s := fmt.Sprintf("%s %v psn %d", dir, e.op, e.psn)
	if e.op.Info().AETH {
		s += " " + wire.Syndrome(e.aux).String()
	}
	return s
}

// formatRate formats a rate in kbit/s, of which 0 is unlimited.
func formatRate(kbit uint32) string {
	if kbit == 0 {
		return "unlimited"
	}
	return fmt.Sprintf("%.1f Mbit/s", float64(kbit)/1000)
}
