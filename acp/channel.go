package acp

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// ChannelOptions say what the end of a channel is made of. The zero value is good for most.
type ChannelOptions struct {
	// SlotSize is the length of a slot in bytes, a multiple of 8; 64 KiB unless given.
	// It is the same at both ends.
	SlotSize int

	// Slots is how many slots this end has: 2 of a sender and 8 of a receiver unless given.
	Slots int

	// Imm has the ends signal by immediate data of writes. Without it they mirror indices
	// in each other's memory, as the paper has it. It is the same at both ends.
	Imm bool

	// Copy has long messages, too, go through the sender's slots. Without it, messages that are longer than
	// a few KiB leave from where they are, and their send is complete when they have left.
	Copy bool
}

// directMin is the length of messages that leave from where they are.
const directMin = 8 << 10

// maxSlotSize is the length of a slot at most.
const maxSlotSize = 1 << 30

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
		return fmt.Errorf("%w: slots of %d bytes; a multiple of 8 from 16 to 2^30 is wanted", ErrOptions, o.SlotSize)
	}
	if o.Slots < 1 || o.Slots > protocol.MaxSlots {
		return fmt.Errorf("%w: %d slots; 1 to %d are wanted", ErrOptions, o.Slots, protocol.MaxSlots)
	}
	if n := uint64(o.Slots)*uint64(o.SlotSize) + protocol.SenderControl; n > min(protocol.MaxLength, math.MaxInt) {
		return fmt.Errorf("%w: %d slots of %d bytes are longer than a region, 2^%d", ErrOptions, o.Slots, o.SlotSize, protocol.OffsetBits)
	}
	return nil
}

// Channel is an end of a channel (acp_ch_t): a queue of messages from one rank to another. Its methods
// do not wait. They may be called from any goroutine.
type Channel struct {
	p            *Process
	mem          *Region // control block and slots
	remote       GA      // control block of the other end
	send         *protocol.Sender
	recv         *protocol.Receiver
	first        *Request // sends or receives that are not done, and at last the freeing
	last         *Request
	err          error // why the channel is of no more use
	peer         int32
	number       uint32 // of the channels from one rank to another
	size         uint32 // of a slot
	id, remoteID uint16 // of this end, and of the other one

	state          channelState
	imm            bool
	copyOnly       bool
	active         bool  // in channels.active
	creditDue      bool  // in channels.creditsDue
	freed          bool  // Free was called
	connectPending bool  // an access for the connecting is under way
	crbProbe       uint8 // the place in the connection request buffer that is tried next
	eof            bool  // no message follows: the sender has put that, or the receiver has seen it
	receiverFreed  bool  // the receiver writes no more: the sender's memory may go
	hasBoard       bool  // the sending end has one
	lastWasLong    bool  // the last message that came was
	outstanding    int32 // accesses under way
}

type channelState uint8

const (
	connecting channelState = iota // sender: to enter the request. Receiver: none has come
	requested                      // sender: to be answered
	open
	released // its memory is given back
)

// NewChannel makes this rank's end of a channel from one rank to another (acp_create_ch), of which this
// one is one. It does not wait for the other end to be made: the channel is connected with the first
// message. There may be several channels between two ranks: both make them in the same order.
//
// From a rank to itself, the first call makes the receiving end and the next one the sending end.
func (p *Process) NewChannel(sender, receiver int, o ChannelOptions) (*Channel, error) {
	if p.isNull() {
		return nil, p.newError("create channel", "", ErrNull)
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	p.noteActivity()
	ch, err := p.newChannel(sender, receiver, o)
	if err != nil {
		return nil, p.newError("create channel", fmt.Sprintf("from rank %d to rank %d", sender, receiver), err)
	}
	p.pollProgress()
	return ch, nil
}

func (p *Process) newChannel(sender, receiver int, o ChannelOptions) (*Channel, error) {
	c := &p.channels
	e := direction{rank: receiver, sends: sender == p.rank}
	switch {
	case p.closed:
		return nil, ErrClosed
	case sender < 0 || sender >= p.size || receiver < 0 || receiver >= p.size:
		return nil, fmt.Errorf("%w: there are %d", ErrRank, p.size)
	case sender == receiver && sender == p.rank:
		e.sends = c.created[direction{p.rank, false}] > c.created[direction{p.rank, true}]
	case receiver == p.rank:
		e.rank = sender
	case sender != p.rank:
		return nil, fmt.Errorf("%w: it does not concern rank %d", ErrRank, p.rank)
	}
	if err := o.applyDefaults(e.sends); err != nil {
		return nil, err
	}
	ch := &Channel{p: p, peer: int32(e.rank), number: c.created[e], size: uint32(o.SlotSize), imm: o.Imm, copyOnly: o.Copy}
	control, signals := protocol.ReceiverControl, o.Slots
	if e.sends {
		ch.send = protocol.NewSender(o.SlotSize, o.Slots)
		control, signals = protocol.SenderControl, 3 // two for half of the slots each, and that the end is freed
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

// Memory is what this end takes, in bytes, as it was asked of the allocator: all that there is
// for as long as the end, whatever its use.
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

// String names the channel: "channel 0 from rank 2 to rank 3".
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

// makeProgress does what can be done, and reports whether only memory will tell when there is more.
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

// failChannel ends a channel: all that is asked of it fails, and its memory is given back.
func (ch *Channel) failChannel(why error) {
	if ch.err != nil || ch.state == released {
		return
	}
	ch.err = why
	if ch.recv != nil {
		delete(ch.p.channels.unmatched, requestKey{int(ch.peer), ch.number})
	}
	over := ch.recv != nil && ch.eof // all has come that there was: nothing is lost
	for r := ch.popRequest(); r != nil; r = ch.popRequest() {
		switch {
		case over && r.kind == freeKind:
			r.complete(nil)
		case over:
			r.complete(ErrEnd)
		default:
			r.complete(why)
		}
	}
	ch.p.engine.events++
	ch.p.channels.markActive(ch) // for release, when nothing is under way any more
}

// releaseMemory gives the memory of an end back.
func (ch *Channel) releaseMemory() {
	if ch.state == released {
		return
	}
	if ch.outstanding > 0 || ch.connectPending {
		if int(ch.peer) != ch.p.rank {
			ch.p.probeRank(int(ch.peer)) // nobody hears of what is Lazy unless something follows
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
	_ = ch.p.memory.unregisterRegion(ch.mem) // nothing is under way on it
	ch.mem = nil
	ch.p.channels.removeEnd(ch)
	ch.p.engine.events++
}

// controlWord is a word of our control block.
func (ch *Channel) controlWord(off int) uint64 { return ch.mem.LoadUint64(ch.controlOffset() + off) }

// slotCount is how many slots this end has.
func (ch *Channel) slotCount() int { return ch.controlOffset() / int(ch.size) }

// controlOffset is where our control block begins: behind the slots.
func (ch *Channel) controlOffset() int {
	n := len(ch.mem.Bytes()) - protocol.ReceiverControl
	if ch.send != nil {
		n += protocol.ReceiverControl - protocol.SenderControl
	}
	return n
}

// slotBuf is the memory of one of our slots, and where it begins.
func (ch *Channel) slotBuf(i int) (b []byte, off int) {
	off = i * int(ch.size)
	return ch.mem.Bytes()[off:][:ch.size], off
}
