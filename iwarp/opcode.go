package iwarp

import "fmt"

// An Opcode is the kind of an RDMAP message (RFC 5040, section 4.2; RFC 7306, section 4).
type Opcode uint8

// The opcodes. OpSendImm and OpSendSEImm are extensions of this package.
const (
	OpWrite          Opcode = 0x0
	OpReadRequest    Opcode = 0x1
	OpReadResponse   Opcode = 0x2
	OpSend           Opcode = 0x3
	OpSendInv        Opcode = 0x4
	OpSendSE         Opcode = 0x5
	OpSendSEInv      Opcode = 0x6
	OpTerminate      Opcode = 0x7
	OpImmediate      Opcode = 0x8
	OpImmediateSE    Opcode = 0x9
	OpAtomicRequest  Opcode = 0xa
	OpAtomicResponse Opcode = 0xb
	OpSendImm        Opcode = 0xc
	OpSendSEImm      Opcode = 0xd
)

// Queues of untagged messages (RFC 5040, section 5.1; RFC 7306, section 4).
const (
	QueueSend           = 0
	QueueRequest        = 1
	QueueTerminate      = 2
	QueueAtomicResponse = 3
	Queues              = 4 // number of queues
)

type opcodeInfo struct {
	name   string
	tagged bool
	queue  uint32
}

var opcodes = [16]opcodeInfo{
	OpWrite:          {"WRITE", true, 0},
	OpReadRequest:    {"READ_REQUEST", false, QueueRequest},
	OpReadResponse:   {"READ_RESPONSE", true, 0},
	OpSend:           {"SEND", false, QueueSend},
	OpSendInv:        {"SEND_INVALIDATE", false, QueueSend},
	OpSendSE:         {"SEND_SE", false, QueueSend},
	OpSendSEInv:      {"SEND_SE_INVALIDATE", false, QueueSend},
	OpTerminate:      {"TERMINATE", false, QueueTerminate},
	OpImmediate:      {"IMMEDIATE", false, QueueSend},
	OpImmediateSE:    {"IMMEDIATE_SE", false, QueueSend},
	OpAtomicRequest:  {"ATOMIC_REQUEST", false, QueueRequest},
	OpAtomicResponse: {"ATOMIC_RESPONSE", false, QueueAtomicResponse},
	OpSendImm:        {"SEND_IMM", false, QueueSend},
	OpSendSEImm:      {"SEND_SE_IMM", false, QueueSend},
}

// String returns the name, for example "READ_REQUEST".
func (o Opcode) String() string {
	if int(o) < len(opcodes) && opcodes[o].name != "" {
		return opcodes[o].name
	}
	return fmt.Sprintf("Opcode(%#x)", uint8(o))
}

// IsDefined reports whether the opcode is one of the above.
func (o Opcode) IsDefined() bool { return int(o) < len(opcodes) && opcodes[o].name != "" }

// IsTagged reports whether segments of the opcode are tagged.
func (o Opcode) IsTagged() bool { return o.IsDefined() && opcodes[o].tagged }

// Queue returns the queue of an untagged opcode.
func (o Opcode) Queue() uint32 { return opcodes[o&15].queue }

// IsSolicited reports whether the message raises a solicited event at the receiver.
func (o Opcode) IsSolicited() bool {
	return o == OpSendSE || o == OpSendSEInv || o == OpImmediateSE || o == OpSendSEImm
}

// Invalidates reports whether the message invalidates a key of the receiver.
func (o Opcode) Invalidates() bool { return o == OpSendInv || o == OpSendSEInv }
