package protocol

// The connection handshake of a channel (section III.D.3 of the ACP paper).
//
// The memory of the sending end is registered. It ends with a control block of three words:
//
//	0   the ConnectRequest, then the reply: the receiver's control block
//	8   the ConnectRequest, then the ConnectReply, whose state replaces it
//	16  head: mirrored by the receiver, the number of slots that it has consumed
//
// The sender enters the address of the block into the receiver's connection request buffer (CRB), an array of
// words in its starter memory, by a compare-and-swap of a word that is 0. So a request is entered completely
// or not at all, and a sender that dies leaks no word.
//
// The receiver takes the word out, reads the block, finds the channel by its index among those created from
// the one rank to the other, and writes the reply. The receiving end's memory ends with a control block of
// one word:
//
//	0   tail: mirrored by the sender, the number of slots that it has written
//
// The slots precede the control blocks, aligned to cache lines.
const (
	SenderControl   = 24 // bytes
	ReceiverControl = 8

	HeadOffset  = 16 // offsets in the sender's control block
	ReplyOffset = 8
)

// HeadFreed in the mirrored head means that the receiver has freed its end and writes no more.
const HeadFreed = 1 << 63

// State is the state of a connection request.
type State uint8

// The states of a ConnectReply.
const (
	Pending      State = iota // no reply yet
	Accepted                  // the other word is the receiver's control block
	SizeMismatch              // the slot sizes differ: the other word is the receiver's
	ModeMismatch              // one end signals by immediate data and the other one does not
)

// ConnectRequest contains the parameters of a sending end.
type ConnectRequest struct {
	SlotSize uint32
	Number   uint32 // index among the channels from this rank to the other one, from 0
	ID       uint16 // of the end at its rank, for immediate data
	Imm      bool   // signals by immediate data
	Board    bool   // has a board for adverts
	To       uint32 // rank of the receiver
}

// EncodeWords encodes the request.
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

// ParseConnectRequest decodes a request. It returns false if w is not one, or is not for rank to.
func ParseConnectRequest(w [2]uint64, to int) (a ConnectRequest, ok bool) {
	a = ConnectRequest{SlotSize: uint32(w[0]), Number: uint32(w[0] >> 32), To: uint32(w[1] >> 8 & 0xffffff), ID: uint16(w[1] >> 32), Imm: w[1]>>48&1 != 0, Board: w[1]>>49&1 != 0}
	return a, a.EncodeWords() == w && int(a.To) == to
}

// ConnectReply is the reply of the receiving end.
type ConnectReply struct {
	State    State
	Control  GA     // of the receiving end, if Accepted
	SlotSize uint32 // of the receiving end, if SizeMismatch
	Slots    uint32 // of the receiving end
	ID       uint16 // of the receiving end at its rank
}

// EncodeWords encodes the reply. The second word must become visible last.
func (a ConnectReply) EncodeWords() (w [2]uint64) {
	w[0] = uint64(a.Control)
	if a.State == SizeMismatch {
		w[0] = uint64(a.SlotSize)
	}
	w[1] = uint64(a.State) | uint64(a.Slots&0xffffff)<<8 | uint64(a.ID)<<32
	return w
}

// ParseConnectReply decodes a reply, from a block whose second word has the state of one.
func ParseConnectReply(w [2]uint64) (a ConnectReply) {
	a = ConnectReply{State: StateOf(w[1]), Slots: uint32(w[1] >> 8 & 0xffffff), ID: uint16(w[1] >> 32)}
	if a.State == SizeMismatch {
		a.SlotSize = uint32(w[0])
	} else {
		a.Control = GA(w[0])
	}
	return a
}

// StateOf returns the state in the second word of a block.
func StateOf(word uint64) State { return State(word) }

// MaxSlots is the maximum number of slots of an end.
const MaxSlots = 1<<18 - 1

// Signal is a signal of a channel that does not mirror indices. It is sent as immediate data, which contains
// from the top the signal, a number of slots, and the id of the end it is for.
type Signal uint8

// The signals.
const (
	SlotFilled    Signal = iota // one slot of the receiving end was written
	SlotsFreed                  // the receiving end returns credits for a number of slots
	ReceiverFreed               // the receiving end is freed
)

// EncodeImm returns the immediate data of a signal.
func EncodeImm(s Signal, count int, id uint16) uint32 {
	return uint32(s)<<30 | uint32(count)<<RegionBits | uint32(id)
}

// ParseImm decodes immediate data.
func ParseImm(imm uint32) (s Signal, count int, id uint16) {
	return Signal(imm >> 30), int(imm >> RegionBits & MaxSlots), uint16(imm & (MaxRegions - 1))
}
