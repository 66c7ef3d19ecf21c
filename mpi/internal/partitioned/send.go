package partitioned

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A Send is the sending side of a partitioned message.
type Send struct {
	table *Table
	comm  *comm.Comm
	dest  int // rank in the job
	tag   int
	offer offer

	buf      datatype.Buffer
	packed   []byte // packed copy of a buffer that is not contiguous, or nil
	mem      []byte // the message: memory of the buffer, or packed
	elements int    // of a partition
	size     int    // of a partition in bytes

	key    envelope.Key // memory of the receiver; its ID is the first number
	direct bool         // partitions are written to key
	keyed  bool         // key has arrived

	active  bool   // between Start and Finish
	open    bool   // the receiver has started the round
	starts  int    // of the receiver, for later rounds; not counted if partitions are messages
	ready   []bool // partitions of the round
	nReady  int
	done    int // partitions whose memory may be reused
	flights int // transfers in progress
	err     error

	free   []*protocol.Request // of transfers
	onDone func(*protocol.Request)
}

// NewSend makes a send of a buffer in equal partitions, which CheckPartitions has accepted.
func (t *Table) NewSend(c *comm.Comm, b datatype.Buffer, partitions, dest, tag int) (*Send, error) {
	s := &Send{table: t, comm: c, dest: c.WorldRank(dest), tag: tag, buf: b, elements: b.Count() / partitions, ready: make([]bool, partitions)}
	var ok bool
	if s.mem, ok = b.Contiguous(); !ok {
		s.packed = make([]byte, b.Size())
		s.mem = s.packed
	}
	s.size, s.onDone = len(s.mem)/partitions, s.finishTransfer
	core, err := t.engine.Lock()
	if err != nil {
		return nil, err
	}
	defer t.engine.Unlock()
	t.lastID++
	s.offer = offer{id: t.lastID, partitions: partitions, bytes: uint64(len(s.mem)), signature: b.MessageSignature()}
	t.sends[s.offer.id] = s
	var payload [offerSize]byte
	s.offer.marshalTo(payload[:], match.Envelope{Context: c.ContextID, Tag: int32(tag)})
	if err := core.SendActive(s.dest, s.header(packetOffer), payload[:]); err != nil {
		delete(t.sends, s.offer.id)
		return nil, err
	}
	return s, nil
}

// header returns the header of a packet about the send.
func (s *Send) header(k packetType) envelope.Header {
	return envelope.Header{Context: PacketContext, Tag: int32(k), ID: s.offer.id, Length: s.offer.bytes}
}

// Start starts a round.
func (s *Send) Start() error {
	if _, err := s.table.engine.Lock(); err != nil {
		return err
	}
	defer s.table.engine.Unlock()
	if s.err != nil {
		return s.err
	}
	s.active, s.open, s.nReady, s.done = true, false, 0, 0
	clear(s.ready)
	s.openRound()
	return nil
}

// Pready marks the partitions [from, to) as ready, and sends them once the receiver has started.
func (s *Send) Pready(from, to int) error {
	core, err := s.table.engine.Lock()
	if err != nil {
		return err
	}
	defer s.table.engine.Unlock()
	switch {
	case !s.active:
		return fmt.Errorf("%w: not active", collective.ErrRequest)
	case s.err != nil:
		return s.err
	case from < 0 || from > to || to > len(s.ready):
		return RangeError(from, to, len(s.ready))
	}
	for i := from; i < to; i++ {
		if s.ready[i] {
			return fmt.Errorf("%w: partition %d is ready already", ErrPartition, i)
		}
	}
	for i := from; i < to; i++ {
		s.ready[i] = true
		s.nReady++
		if s.packed != nil {
			s.buf.Slice(i*s.elements, (i+1)*s.elements).Pack(s.packed[i*s.size:][:s.size])
		}
		if s.open {
			s.transfer(core, i)
		}
	}
	return s.err
}

// openRound begins the transfers of a round that both sides have started, or of messages in any round
// once their numbers are known.
func (s *Send) openRound() {
	if !s.active || s.open || s.starts == 0 || s.err != nil {
		return
	}
	if s.direct {
		s.starts--
	}
	s.open = true
	for i, ready := range s.ready {
		if ready {
			s.transfer(s.table.engine.Core(), i)
		}
	}
}

// transfer sends a partition.
func (s *Send) transfer(core *protocol.Core, i int) {
	var r *protocol.Request
	if n := len(s.free) - 1; n >= 0 {
		r = s.free[n]
		s.free = s.free[:n]
		*r = protocol.Request{}
	} else {
		r = &protocol.Request{}
	}
	r.Dest, r.Buf, r.OnDone = s.dest, s.mem[i*s.size:][:s.size], s.onDone
	s.flights++
	if !s.direct {
		r.Envelope = match.Envelope{Context: PacketContext, Tag: int32(s.key.ID) + int32(i)}
		core.Send(r)
		return
	}
	key := s.key
	key.Addr += uint64(i * s.size)
	core.PutNotify(r, key, NoticeFlag|uint32(s.key.ID)+uint32(i))
}

// finishTransfer implements protocol.Request.OnDone.
func (s *Send) finishTransfer(r *protocol.Request) {
	s.flights--
	s.done++
	if r.Err != nil {
		s.fail(r.Err)
	}
	s.free = append(s.free, r)
}

// handleKey handles the first start of the receiver.
func (s *Send) handleKey(h *envelope.Header, payload []byte) error {
	if s.keyed {
		return fmt.Errorf("%w: second key of a partitioned receive", protocol.ErrProtocol)
	}
	var key envelope.Key
	if err := key.Unmarshal(payload); err != nil {
		return fmt.Errorf("%w: %w", protocol.ErrProtocol, err)
	}
	if key.ID > NoticeFlag-uint64(len(s.ready)) {
		return fmt.Errorf("%w: partition numbers from %d", protocol.ErrProtocol, key.ID)
	}
	direct := h.Flags&envelope.ByWrite != 0
	if _, ok := s.table.engine.Fabric().(protocol.Notifier); direct && (!ok || s.size == 0) {
		return fmt.Errorf("%w: key for partitions of %d bytes that cannot be written", protocol.ErrProtocol, s.size)
	}
	s.key, s.keyed, s.direct, s.starts = key, true, direct, 1
	s.openRound()
	return nil
}

// handleStart handles a start of the receiver. It can be one round ahead.
func (s *Send) handleStart() error {
	if !s.direct {
		return fmt.Errorf("%w: start of a partitioned receive without a key to write by", protocol.ErrProtocol)
	}
	if s.starts++; s.starts > 1 {
		return fmt.Errorf("%w: partitioned receive started %d rounds ahead", protocol.ErrProtocol, s.starts)
	}
	s.openRound()
	return nil
}

// handleRefuse handles the reply of a receiver that does not fit.
func (s *Send) handleRefuse(bytes, signature uint64) error {
	err := compareSides(s.offer.bytes, bytes, s.offer.signature, signature)
	if err == nil {
		return fmt.Errorf("%w: refusal of a partitioned send that fits", protocol.ErrProtocol)
	}
	s.fail(err)
	return nil
}

// fail ends the use of the send.
func (s *Send) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Ready reports whether the round is done. It implements engine.Waitable.
func (s *Send) Ready() bool {
	if s.err != nil {
		return s.flights == 0
	}
	return !s.active || s.done == len(s.ready)
}

// Finish ends a round that is done and returns its error.
func (s *Send) Finish() (err error) {
	s.table.engine.Do(func(*protocol.Core) { s.active, err = false, s.err })
	return err
}

// Free ends the use of a send that is not active.
func (s *Send) Free() {
	s.table.engine.Do(func(*protocol.Core) { delete(s.table.sends, s.offer.id) })
}
