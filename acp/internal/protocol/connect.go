package protocol

// How the ends of a channel find each other (section III.D.3 of the paper).
//
// The sending end has its memory registered. At its end are three words, its
// control block:
//
//	0   what it asks for: Ask. Then the answer: the receiver's control block
//	8   Ask, and then Answer, whose state makes it one
//	16  head: the receiver mirrors there how many slots it has taken
//
// It enters the address of the block into the receiver's connection request buffer (CRB), a
// field of words in its starter memory, by a compare-and-swap of a word that is 0. So a
// request is there whole or not at all, and a sender that dies leaves no place behind that
// would be lost for others.
//
// The receiver takes the word out, reads the block, finds the channel that is meant, the
// same in the order in which both have made channels from the one to the other,
// and writes the answer. The receiving end's memory ends with one word, its control block:
//
//	0   tail: the sender mirrors there how many slots it has put
//
// In front of the control blocks are the slots, at the edges of lines of the cache.
const (
	SenderControl   = 24 // bytes
	ReceiverControl = 8

	HeadOffset  = 16 // in the sender's control block
	ReplyOffset = 8
)

// HeadFreed in the mirrored head says that the receiver has freed its end, and writes no more.
const HeadFreed = 1 << 63

// State is what the ends know of each other.
type State uint8

// The states, as an Answer has them.
const (
	Pending      State = iota // no answer yet
	Accepted                  // the other word is the receiver's control block
	SizeMismatch              // the sizes of slots differ: the other word is the receiver's
	ModeMismatch              // one end signals by immediate data and the other does not
)

// ConnectRequest is what a sending end says of itself.
type ConnectRequest struct {
	SlotSize uint32
	Number   uint32 // which channel of those from this rank to that one, from 0
	ID       uint16 // of the end at its rank, for immediate data
	Imm      bool   // it signals by immediate data
	Board    bool   // it looks at its board: see Place
	To       uint32 // the rank of the receiver
}

// EncodeWords lays it out.
func (a ConnectRequest) EncodeWords() (w [2]uint64) {
	w[0] = uint64(a.SlotSize) | uint64(a.Number)<<32
	w[1] = uint64(a.To)<<8 | uint64(a.ID)<<32
	if a.Imm {
		w[1] |= 1 << 48
	}
	if a.Board {
		w[1] |= 1 << 49
	}
	return w
}

// ParseConnectRequest reads it back. It is not ok if it is no question, or not to rank to.
func ParseConnectRequest(w [2]uint64, to int) (a ConnectRequest, ok bool) {
	a = ConnectRequest{SlotSize: uint32(w[0]), Number: uint32(w[0] >> 32), To: uint32(w[1] >> 8 & 0xffffff), ID: uint16(w[1] >> 32), Imm: w[1]>>48&1 != 0, Board: w[1]>>49&1 != 0}
	return a, a.EncodeWords() == w && int(a.To) == to
}

// ConnectReply is what the receiving end says to it.
type ConnectReply struct {
	State    State
	Control  GA     // of the receiving end, if Accepted
	SlotSize uint32 // of the receiving end, if Refused
	Slots    uint32 // of the receiving end
	ID       uint16 // of the receiving end at its rank
}

// EncodeWords lays it out: the second becomes visible last.
func (a ConnectReply) EncodeWords() (w [2]uint64) {
	w[0] = uint64(a.Control)
	if a.State == SizeMismatch {
		w[0] = uint64(a.SlotSize)
	}
	w[1] = uint64(a.State) | uint64(a.Slots&0xffffff)<<8 | uint64(a.ID)<<32
	return w
}

// ParseConnectReply reads it back, from a block whose second word says that it is one.
func ParseConnectReply(w [2]uint64) (a ConnectReply) {
	a = ConnectReply{State: StateOf(w[1]), Slots: uint32(w[1] >> 8 & 0xffffff), ID: uint16(w[1] >> 32)}
	if a.State == SizeMismatch {
		a.SlotSize = uint32(w[0])
	} else {
		a.Control = GA(w[0])
	}
	return a
}

// StateOf is the state in the second word of a block.
func StateOf(word uint64) State { return State(word) }

// MaxSlots is the number of slots of an end at most.
const MaxSlots = 1<<18 - 1

// Signals of channels that do without mirrored indices come as immediate data: from the top
// what happened, how many slots it is about, and the end that it is for.
type Signal uint8

// The signals.
const (
	SlotFilled    Signal = iota // a slot of the receiving end
	SlotsFreed                  // so many slots, says the receiving end
	ReceiverFreed               // the receiving end is freed
)

// EncodeImm makes immediate data.
func EncodeImm(s Signal, count int, id uint16) uint32 {
	return uint32(s)<<30 | uint32(count)<<RegionBits | uint32(id)
}

// ParseImm reads it back.
func ParseImm(imm uint32) (s Signal, count int, id uint16) {
	return Signal(imm >> 30), int(imm >> RegionBits & MaxSlots), uint16(imm & (MaxRegions - 1))
}
