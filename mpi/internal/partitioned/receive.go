package partitioned

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A Recv is the receiving side of a partitioned message.
type Recv struct {
	table  *Table
	comm   *comm.Comm
	source int // rank in the job
	tag    int

	buf      datatype.Buffer
	packed   []byte // packed message for a buffer that is not contiguous, or nil
	mem      []byte // memory of the buffer, or packed
	elements int    // of a partition

	offer   *offer // of its sender, nil until matched
	first   uint64 // number of the first partition of the sender
	told    bool   // the sender has the key
	exposed protocol.Registration
	// receives of partitions that are messages; nil if they are written
	messages []protocol.Request
	onDone   func(*protocol.Request)
	flights  int // receives in progress

	active, open bool // the round is started; and, unless it waits for the match, open to partitions
	arrived      []bool
	left         int         // partitions of the sender that have not arrived
	parts        []partition // of the receiver
	err          error

	pollRound uint64 // last round in which Parrived polled, of engine.PollStats
}

// A partition is a partition of a receive. Ready reports whether it has arrived.
type partition struct {
	r        *Recv
	left     int64 // what is missing, see Recv.arrive
	unpacked bool
}

// NewRecv makes a receive into a buffer in equal partitions, which CheckPartitions has accepted.
func (t *Table) NewRecv(c *comm.Comm, b datatype.Buffer, partitions, source, tag int) (*Recv, error) {
	r := &Recv{table: t, comm: c, source: c.WorldRank(source), tag: tag, buf: b, elements: b.Count() / partitions, parts: make([]partition, partitions)}
	for i := range r.parts {
		r.parts[i].r = r
	}
	var ok bool
	if r.mem, ok = b.Contiguous(); !ok {
		r.packed = make([]byte, b.Size())
		r.mem = r.packed
	}
	core, err := t.engine.Lock()
	if err != nil {
		return nil, err
	}
	defer t.engine.Unlock()
	if err := core.PeerError(r.source); err != nil {
		return nil, err
	}
	e := r.envelope()
	u := t.unmatchedOf(e)
	if len(u.offers) == 0 {
		u.receives = append(u.receives, r)
		return r, nil
	}
	o := u.offers[0]
	u.offers = u.offers[1:]
	t.dropIfEmpty(e)
	r.match(o)
	return r, nil
}

// envelope returns the envelope that sends match.
func (r *Recv) envelope() match.Envelope {
	return match.Envelope{Context: r.comm.ContextID, Source: int32(r.source), Tag: int32(r.tag)}
}

// match matches the receive with a send.
func (r *Recv) match(o offer) {
	r.offer = &o
	signature := r.buf.MessageSignature()
	err := compareSides(o.bytes, uint64(len(r.mem)), o.signature, signature)
	if err == nil {
		err = r.table.assignNumbers(r, o.partitions)
	}
	if err == nil {
		r.openRound()
		return
	}
	r.fail(err)
	var payload [envelope.SignatureSize]byte
	binary.LittleEndian.PutUint64(payload[:], signature)
	r.send(packetRefuse, 0, payload[:])
}

// send sends a packet to the sender.
func (r *Recv) send(k packetType, flags envelope.Flags, payload []byte) {
	h := envelope.Header{Context: PacketContext, Tag: int32(k), ID: r.offer.id, Length: uint64(len(r.mem)), Flags: flags}
	_ = r.table.engine.Core().SendActive(r.source, h, payload) // a lost rank fails the receive
}

// Start starts a round.
func (r *Recv) Start() error {
	if _, err := r.table.engine.Lock(); err != nil {
		return err
	}
	defer r.table.engine.Unlock()
	if r.err != nil {
		return r.err
	}
	r.active, r.open = true, false
	r.openRound()
	return r.err
}

// openRound tells the sender that a round is started, if the receive is matched.
func (r *Recv) openRound() {
	if !r.active || r.offer == nil || r.open || r.err != nil {
		return
	}
	r.open, r.left = true, len(r.arrived)
	clear(r.arrived)
	for i := range r.parts {
		r.parts[i].left, r.parts[i].unpacked = int64(len(r.arrived)), false
	}
	if !r.told {
		r.tellKey()
		return
	}
	if r.messages != nil {
		r.postReceives()
		return
	}
	r.send(packetStart, 0, nil)
}

// tellKey registers the memory of a long message, so that the sender can write to it, and sends its
// key with the first start.
func (r *Recv) tellKey() {
	r.told = true
	key, flags := envelope.Key{}, envelope.Flags(0)
	fab := r.table.engine.Fabric()
	if _, ok := fab.(protocol.Notifier); ok && r.source != r.table.engine.Rank() && len(r.mem) > fab.Limits(r.source).Eager {
		var err error
		if key, r.exposed, err = fab.RegisterMemory(r.source, r.mem, true); err == nil {
			flags = envelope.ByWrite
		}
	}
	if flags == 0 {
		r.messages, r.onDone = make([]protocol.Request, len(r.arrived)), r.finishReceive
		r.postReceives()
	}
	key.ID = r.first
	var payload [envelope.KeySize]byte
	key.MarshalTo(payload[:])
	r.send(packetKey, flags, payload[:])
}

// postReceives posts the receives of partitions that are messages.
func (r *Recv) postReceives() {
	size := len(r.mem) / len(r.arrived)
	for i := range r.messages {
		r.messages[i] = protocol.Request{
			Envelope: match.Envelope{Context: PacketContext, Source: int32(r.source), Tag: int32(r.first) + int32(i)},
			Buf:      r.mem[i*size:][:size],
			OnDone:   r.onDone,
		}
		r.flights++
		r.table.engine.Core().Receive(&r.messages[i])
	}
}

// finishReceive implements protocol.Request.OnDone.
func (r *Recv) finishReceive(p *protocol.Request) {
	r.flights--
	err := p.Err
	if err == nil && p.Bytes != len(p.Buf) {
		err = fmt.Errorf("%w: partition of %d bytes, want %d", protocol.ErrProtocol, p.Bytes, len(p.Buf))
	}
	if err != nil {
		r.fail(err)
		return
	}
	_ = r.arrive(int(p.Envelope.Tag) - int(r.first)) // once for each receive
}

// arrive records that a partition of the sender is in memory. With n partitions of the sender and
// m of the receiver the message has n*m equal units: n in each partition of the receiver, m in
// each one of the sender.
func (r *Recv) arrive(i int) error {
	if r.err != nil {
		return nil
	}
	if !r.open || r.arrived[i] {
		return fmt.Errorf("%w: unexpected partition %d with tag %d", protocol.ErrProtocol, i, r.tag)
	}
	r.arrived[i] = true
	r.left--
	n, m := int64(len(r.arrived)), int64(len(r.parts))
	from, to := int64(i)*m, int64(i+1)*m
	for j := from / n; j*n < to; j++ {
		r.parts[j].left -= min(to, (j+1)*n) - max(from, j*n)
	}
	return nil
}

// fail ends the use of the receive.
func (r *Recv) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Ready reports whether the round is done. It implements engine.Waitable.
func (r *Recv) Ready() bool {
	if r.err != nil {
		return r.flights == 0
	}
	return !r.active || r.open && r.left == 0
}

// Ready implements engine.Waitable.
func (p *partition) Ready() bool {
	r := p.r
	return !r.active || r.err != nil || r.open && p.left == 0
}

// Parrived reports whether a partition, in range, has arrived; it has if the receive is not active.
// Otherwise it polls the network once.
func (r *Recv) Parrived(i int) (bool, error) {
	if !r.table.engine.Test(&r.parts[i]) {
		return false, nil
	}
	if _, err := r.table.engine.Lock(); err != nil {
		return false, err
	}
	defer r.table.engine.Unlock()
	if r.err != nil {
		return false, r.err
	}
	r.unpack(i)
	return true, nil
}

// unpack copies a partition that has arrived to a buffer that is not contiguous.
func (r *Recv) unpack(i int) {
	if p := &r.parts[i]; r.packed != nil && r.active && !p.unpacked {
		size := len(r.mem) / len(r.parts)
		r.buf.Slice(i*r.elements, (i+1)*r.elements).Unpack(r.packed[i*size:][:size])
		p.unpacked = true
	}
}

// Finish ends a round that is done and returns its error.
func (r *Recv) Finish() (err error) {
	r.table.engine.Do(func(*protocol.Core) {
		if err = r.err; err == nil {
			for i := range r.parts {
				r.unpack(i)
			}
		}
		r.active, r.open = false, false
	})
	return err
}

// Bytes returns the size of the message.
func (r *Recv) Bytes() int { return len(r.mem) }

// Free ends the use of a receive that is not active.
func (r *Recv) Free() {
	t := r.table
	t.engine.Do(func(*protocol.Core) {
		r.deregister()
		if i := slices.Index(t.receives, r); i >= 0 {
			t.receives = slices.Delete(t.receives, i, i+1)
		}
		e := r.envelope()
		if u := t.unmatched[e]; u != nil {
			if i := slices.Index(u.receives, r); i >= 0 {
				u.receives = slices.Delete(u.receives, i, i+1)
			}
			t.dropIfEmpty(e)
		}
	})
}

// deregister ends the access of the sender to the memory.
func (r *Recv) deregister() {
	if r.exposed != nil {
		r.table.engine.Fabric().DeregisterMemory(r.exposed)
		r.exposed = nil
	}
}
