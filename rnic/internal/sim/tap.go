package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// The path of a packet: adapter, top tap, impair, bottom tap, network; and back
// from the network through impair to the top tap and the adapter. The top tap sees
// the packets that adapters send and receive, the bottom tap those on the wire.

// A topTap is the link of the adapter.
type topTap struct {
	link.Conn
	dev    *Device
	single bool // packets are read one by one

	read   *link.Datagrams // single: datagrams read and not yet passed on
	next   int             // of read
	packet int             // of that datagram

	// While recording: the packets last passed to the adapter, and its drop
	// counters before.
	given   []*packetCopy
	dropped map[string]uint64

	overflow uint64 // the port's count of receive overflows
}

// WriteBatch implements link.Conn.
func (t *topTap) WriteBatch(b *link.Batch) error {
	for i := range b.Len() {
		to, pkt := b.Packet(i)
		t.dev.Sent.count(pkt)
		if t.dev.OnSend != nil {
			t.dev.OnSend(to, pkt)
		}
	}
	trace := t.dev.sim.trace
	if trace == nil {
		return t.Conn.WriteBatch(b)
	}
	trace.recordSent(t.dev, b)
	err := t.Conn.WriteBatch(b)
	trace.current = nil
	return err
}

// ReadBatch implements link.Conn.
func (t *topTap) ReadBatch(r *link.Datagrams) (n int, err error) {
	if t.single {
		n, err = t.readOne(r)
	} else {
		n, err = t.Conn.ReadBatch(r)
	}
	trace := t.dev.sim.trace
	for _, d := range r.Msgs() {
		for i := range d.Count() {
			pkt := d.Packet(i)
			t.dev.Received.count(pkt)
			if trace != nil {
				t.given = append(t.given, trace.recordArrived(t.dev, d.Src, d.TOS, pkt))
			}
		}
	}
	if trace != nil {
		if n == 0 {
			trace.markLost(t.dev)
		} else {
			t.dropped = t.dev.Stats().Drops
		}
	}
	return n, err
}

// readOne reads one packet.
func (t *topTap) readOne(r *link.Datagrams) (int, error) {
	r.Reset()
	if t.read == nil {
		t.read = link.NewDatagrams(16)
	}
	if !t.hasPending() {
		t.next, t.packet = 0, 0
		n, err := t.Conn.ReadBatch(t.read)
		r.AddRefusals(t.read.Refusals())
		if n == 0 {
			return 0, err
		}
	}
	d := t.read.Msgs()[t.next]
	pkt := d.Packet(t.packet)
	id := d.ID + uint16(t.packet)
	if t.packet++; t.packet == d.Count() {
		t.next, t.packet = t.next+1, 0
	}
	n := copy(r.Slot(0), pkt)
	r.Add(link.Datagram{Src: d.Src, TOS: d.TOS, Buf: r.Slot(0)[:n], Seg: n, ID: id})
	return 1, nil
}

// hasPending reports whether unread packets are buffered here.
func (t *topTap) hasPending() bool { return t.read != nil && t.next < len(t.read.Msgs()) }

// recordVerdicts records the adapter's verdicts on the packets passed to it.
// For several packets only the number of drops by reason is known.
func (t *topTap) recordVerdicts() {
	n := len(t.given)
	if n == 0 {
		return
	}
	drops := t.dev.Stats().Drops
	for _, reason := range slices.Sorted(maps.Keys(drops)) {
		switch k := drops[reason] - t.dropped[reason]; {
		case k == uint64(n):
			for _, f := range t.given {
				f.verdict = reason
			}
		case k > 0:
			last := t.given[n-1]
			last.verdict = strings.TrimPrefix(fmt.Sprintf("%s, of the last %d packets %d %s", last.verdict, n, k, reason), ", ")
		}
	}
	t.given = t.given[:0]
}

// A bottomTap is the link that impair writes to.
type bottomTap struct {
	link.Conn
	dev *Device
}

// WriteBatch implements link.Conn.
func (t *bottomTap) WriteBatch(b *link.Batch) error {
	if trace := t.dev.sim.trace; trace != nil {
		b.Seal(t.LocalAddr(), t.Caps().GSO)
		trace.recordLeft(t.dev, b)
	}
	return t.Conn.WriteBatch(b)
}

// Unwrap returns the link inside, for its counters.
func (t *bottomTap) Unwrap() link.Conn { return t.Conn }

// Unwrap returns the link inside, for its counters.
func (t *topTap) Unwrap() link.Conn { return t.Conn }

// A Tally counts packets by the kinds that the counters of adapters
// distinguish.
type Tally struct {
	Packets  uint64
	Payload  uint64 // bytes of requests and read responses, without padding
	RNRNAKs  uint64
	SeqNAKs  uint64
	NAKs     uint64 // all others
	CNPs     uint64
	Requests uint64 // request packets
}

func (t *Tally) count(pkt []byte) {
	t.Packets++
	var p wire.Packet
	if p.Parse(pkt) != wire.DropNone {
		return
	}
	if p.Info.Operation != wire.OpSelectiveAck {
		t.Payload += uint64(len(p.Payload))
	}
	switch {
	case p.Info.Operation == wire.OpCNP:
		t.CNPs++
	case p.Info.Request:
		t.Requests++
	case p.Info.Operation == wire.OpAck:
		switch s := p.AETH().Syndrome; {
		case s.Kind() == wire.KindRNR:
			t.RNRNAKs++
		case s == wire.NakPSNSequence:
			t.SeqNAKs++
		case s.Kind() == wire.KindNAK:
			t.NAKs++
		}
	}
}
