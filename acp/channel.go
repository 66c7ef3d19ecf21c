package acp

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// ChannelOptions configure one end of a channel. The zero value suits most programs.
type ChannelOptions struct {
	// SlotSize is the length of a slot in bytes, a multiple of 8. 0 means 64 KiB. It must be equal at both
	// ends.
	SlotSize int

	// Slots is the number of slots of this end. 0 means 2 for a sender and 8 for a receiver.
	Slots int

	// Imm makes the ends signal by RDMA WRITE with immediate data. Without it they mirror head and tail
	// indices in each other's memory, as the ACP paper does. It must be equal at both ends.
	Imm bool

	// Copy makes long messages go through the sender's slots as well. Without it, messages of 8 KiB or more
	// are sent from the program's buffer (zero-copy), and their send completes when the adapter has sent
	// them.
	Copy bool
}

// directMin is the minimum length in bytes of messages that are sent from the program's buffer.
const directMin = 8 << 10

// maxSlotSize is the maximum length of a slot in bytes.
const maxSlotSize = 1 << 30

// applyDefaults fills in the zero fields, and validates the options.
func (o *ChannelOptions) applyDefaults(sends bool) error {
	if o.SlotSize == 0 {
		o.SlotSize = 64 << 10
	}
	if o.Slots == 0 {
		o.Slots = 8
		if sends {
			o.Slots = 2
		}
	}
	if o.SlotSize < 16 || o.SlotSize%8 != 0 || o.SlotSize > maxSlotSize {
		return fmt.Errorf("%w: ChannelOptions.SlotSize is %d, want a multiple of 8 from 16 to 2^30", ErrOptions, o.SlotSize)
	}
	if o.Slots < 1 || o.Slots > protocol.MaxSlots {
		return fmt.Errorf("%w: ChannelOptions.Slots is %d, want 1 to %d", ErrOptions, o.Slots, protocol.MaxSlots)
	}
	if n := uint64(o.Slots)*uint64(o.SlotSize) + protocol.SenderControl; n > min(protocol.MaxLength, math.MaxInt) {
		return fmt.Errorf("%w: %d slots of %d bytes exceed a region of 2^%d bytes", ErrOptions, o.Slots, o.SlotSize, protocol.OffsetBits)
	}
	return nil
}

// Channel is one end of a channel (acp_ch_t): a queue of messages from one rank to another. Its methods do
// not block, and may be called concurrently.
type Channel struct {
	p            *Process
	mem          *Region     // slots and control block
	remote       protocol.GA // control block of the other end
	send         *protocol.Sender
	recv         *protocol.Receiver
	first        *Request // incomplete sends or receives in order, and at last the Free
	last         *Request
	err          error // why the channel failed
	peer         int32
	number       uint32 // index among the channels between the same ranks in this direction
	size         uint32 // of a slot, in bytes
	id, remoteID uint16 // identifiers of this end and the other one

	state          channelState
	imm            bool
	copyOnly       bool
	active         bool  // in channels.active
	creditDue      bool  // in channels.creditsDue
	freed          bool  // Free was called
	connectPending bool  // an access of the connection handshake is in flight
	crbProbe       uint8 // offset of the CRB word that is tried next
	eof            bool  // no message follows: the sender has sent EOF, or the receiver has received it
	receiverFreed  bool  // the receiver writes no more, so the sender's memory may be released
	hasBoard       bool  // the sending end has a board of adverts
	lastWasLong    bool  // the last received message was long
	outstanding    int32 // accesses in flight
}

type channelState uint8

const (
	connecting channelState = iota // sender: the request must be entered. Receiver: no request has arrived
	requested                      // sender: waits for the reply
	open
	released // the memory is deregistered
)

// NewChannel creates this rank's end of a channel between two ranks, one of which is this one
// (acp_create_ch). It does not wait for the other end: the connection is established with the first message.
// Several channels may exist between two ranks: both create them in the same order.
//
// For a channel from a rank to itself, the first call creates the receiving end and the next one the sending
// end.
func (p *Process) NewChannel(sender, receiver int, o ChannelOptions) (*Channel, error) {
	if p.isNull() {
		return nil, p.newError("create channel", "", ErrNull)
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	ch, err := p.newChannel(sender, receiver, o)
	if err != nil {
		return nil, p.newError("create channel", fmt.Sprintf("from rank %d to rank %d", sender, receiver), err)
	}
	p.pollProgress()
	return ch, nil
}

// newChannel creates this rank's end of a channel. p.mu must be held.
func (p *Process) newChannel(sender, receiver int, o ChannelOptions) (*Channel, error) {
	c := &p.channels
	e := direction{rank: receiver, sends: sender == p.rank}
	switch {
	case p.closed:
		return nil, ErrClosed
	case sender < 0 || sender >= p.size || receiver < 0 || receiver >= p.size:
		return nil, fmt.Errorf("%w: want ranks below %d", ErrRank, p.size)
	case sender == receiver && sender == p.rank:
		e.sends = c.created[direction{p.rank, false}] > c.created[direction{p.rank, true}]
	case receiver == p.rank:
		e.rank = sender
	case sender != p.rank:
		return nil, fmt.Errorf("%w: neither end is rank %d", ErrRank, p.rank)
	}
	if err := o.applyDefaults(e.sends); err != nil {
		return nil, err
	}
	ch := &Channel{p: p, peer: int32(e.rank), number: c.created[e], size: uint32(o.SlotSize), imm: o.Imm, copyOnly: o.Copy}
	control, signals := protocol.ReceiverControl, o.Slots
	if e.sends {
		ch.send = protocol.NewSender(o.SlotSize, o.Slots)
		control, signals = protocol.SenderControl, 3 // two credits, of half of the slots each, and ReceiverFreed
	} else {
		ch.recv = protocol.NewReceiver(o.SlotSize, o.Slots)
	}
	if ch.imm {
		if err := p.net.ReserveSignals(signals); err != nil {
			return nil, err
		}
	}
	var err error
	ch.mem, err = p.memory.registerRegion(p, make([]byte, control+o.Slots*o.SlotSize))
	if err == nil {
		if err = c.assignID(ch); err != nil {
			_ = p.memory.unregisterRegion(ch.mem)
		}
	}
	if err != nil {
		if ch.imm {
			p.net.ReleaseSignals(signals)
		}
		return nil, err
	}
	c.created[e]++
	if e.sends {
		ch.hasBoard = !ch.copyOnly && ch.size >= protocol.HeaderSize+directMin+protocol.BoardSize && e.rank != p.rank
		q := protocol.ConnectRequest{SlotSize: ch.size, Number: ch.number, ID: ch.id, Imm: ch.imm, Board: ch.hasBoard, To: uint32(e.rank)}
		for i, w := range q.EncodeWords() {
			atomic.StoreUint64(wordPtr(ch.mem.Bytes(), ch.controlOffset()+8*i), w)
		}
		c.markActive(ch)
		return ch, nil
	}
	name := requestKey{e.rank, ch.number}
	if q, ok := c.requests[name]; ok {
		delete(c.requests, name)
		ch.acceptRequest(q)
	} else {
		c.unmatched[name] = ch
	}
	if r := p.peers[e.rank]; r != nil && r.lostErr != nil {
		ch.failChannel(r.lostErr)
	}
	return ch, nil
}

// Memory returns the memory of this end in bytes. It is constant while the end exists.
func (ch *Channel) Memory() int {
	if ch.isNull() {
		return 0
	}
	n := int(unsafe.Sizeof(*ch))
	if ch.send != nil {
		n += int(unsafe.Sizeof(*ch.send))
	} else {
		n += int(unsafe.Sizeof(*ch.recv))
	}
	if ch.mem != nil {
		n += len(ch.mem.Bytes())
	}
	return n
}

// String returns a name such as "channel 0 from rank 2 to rank 3".
func (ch *Channel) String() string {
	if ch.isNull() {
		return "null channel"
	}
	from, to := ch.p.rank, int(ch.peer)
	if ch.recv != nil {
		from, to = to, from
	}
	return fmt.Sprintf("channel %d from rank %d to rank %d", ch.number, from, to)
}

// makeProgress advances the channel. It reports whether the next event is visible in memory only, so that the
// channel must be polled.
func (ch *Channel) makeProgress() (watch bool) {
	switch {
	case ch.state == released:
		return false
	case ch.err != nil:
		ch.releaseMemory()
		return false
	case ch.send != nil:
		return ch.progressSend()
	default:
		return ch.progressRecv()
	}
}

// failChannel fails the channel and all its requests with why, and releases its memory when no access is in
// flight. It is idempotent.
func (ch *Channel) failChannel(cause error) {
	if ch.err != nil || ch.state == released {
		return
	}
	ch.err = cause
	if ch.recv != nil {
		delete(ch.p.channels.unmatched, requestKey{int(ch.peer), ch.number})
	}
	drained := ch.recv != nil && ch.eof // everything has been received: no message is lost
	for r := ch.popRequest(); r != nil; r = ch.popRequest() {
		switch {
		case drained && r.kind == freeKind:
			r.complete(nil)
		case drained:
			r.complete(ErrEnd)
		default:
			r.complete(cause)
		}
	}
	ch.p.changes++
	ch.p.channels.markActive(ch) // calls releaseMemory when nothing is in flight
}

// releaseMemory deregisters the memory of an end, unless accesses are still in flight.
func (ch *Channel) releaseMemory() {
	if ch.state == released {
		return
	}
	if ch.outstanding > 0 || ch.connectPending {
		if int(ch.peer) != ch.p.rank {
			ch.p.probeRank(int(ch.peer)) // lazy operations complete only with a later one
		}
		return
	}
	ch.state = released
	if ch.imm {
		n := 3
		if ch.recv != nil {
			n = ch.slotCount()
		}
		ch.p.net.ReleaseSignals(n)
	}
	_ = ch.p.memory.unregisterRegion(ch.mem) // nothing is in flight on it
	ch.mem = nil
	ch.p.channels.removeEnd(ch)
	ch.p.changes++
}

// controlWord returns a word of the local control block.
func (ch *Channel) controlWord(off int) uint64 { return ch.mem.LoadUint64(ch.controlOffset() + off) }

// slotCount returns the number of slots of this end.
func (ch *Channel) slotCount() int { return ch.controlOffset() / int(ch.size) }

// controlOffset returns the offset of the control block, which follows the slots.
func (ch *Channel) controlOffset() int {
	n := len(ch.mem.Bytes()) - protocol.ReceiverControl
	if ch.send != nil {
		n += protocol.ReceiverControl - protocol.SenderControl
	}
	return n
}

// slotBuf returns the memory of a local slot and its offset in the region.
func (ch *Channel) slotBuf(i int) (b []byte, off int) {
	off = i * int(ch.size)
	return ch.mem.Bytes()[off:][:ch.size], off
}
