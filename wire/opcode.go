package wire

import "strconv"

// Opcode is the first byte of the BTH: transport class in bits 7..5, operation
// in bits 4..0.
type Opcode uint8

// Opcodes an adapter of type RC, UC and UD exchanges, and the congestion
// notification packet. Names are those of rdma-core's libibverbs/opcode.h, RDMA
// left out.
const (
	RCSendFirst      Opcode = 0x00
	RCSendMiddle     Opcode = 0x01
	RCSendLast       Opcode = 0x02
	RCSendLastImm    Opcode = 0x03
	RCSendOnly       Opcode = 0x04
	RCSendOnlyImm    Opcode = 0x05
	RCWriteFirst     Opcode = 0x06
	RCWriteMiddle    Opcode = 0x07
	RCWriteLast      Opcode = 0x08
	RCWriteLastImm   Opcode = 0x09
	RCWriteOnly      Opcode = 0x0A
	RCWriteOnlyImm   Opcode = 0x0B
	RCReadRequest    Opcode = 0x0C
	RCReadRespFirst  Opcode = 0x0D
	RCReadRespMiddle Opcode = 0x0E
	RCReadRespLast   Opcode = 0x0F
	RCReadRespOnly   Opcode = 0x10
	RCAck            Opcode = 0x11
	RCAtomicAck      Opcode = 0x12
	RCCmpSwap        Opcode = 0x13
	RCFetchAdd       Opcode = 0x14
	RCSendLastInv    Opcode = 0x16
	RCSendOnlyInv    Opcode = 0x17
	RCFlush          Opcode = 0x1C // IBTA volume 1, release 1.5, annex A19, as RCAtomicWrite
	RCAtomicWrite    Opcode = 0x1D
	UCSendFirst      Opcode = 0x20
	UCSendMiddle     Opcode = 0x21
	UCSendLast       Opcode = 0x22
	UCSendLastImm    Opcode = 0x23
	UCSendOnly       Opcode = 0x24
	UCSendOnlyImm    Opcode = 0x25
	UCWriteFirst     Opcode = 0x26
	UCWriteMiddle    Opcode = 0x27
	UCWriteLast      Opcode = 0x28
	UCWriteLastImm   Opcode = 0x29
	UCWriteOnly      Opcode = 0x2A
	UCWriteOnlyImm   Opcode = 0x2B
	UDSendOnly       Opcode = 0x64
	UDSendOnlyImm    Opcode = 0x65
	CNP              Opcode = 0x81

	// RDMA over UD, between softrnics that have agreed on it: see
	// docs/ud-rdma.md. Codes from 0xC0 on are the manufacturers' (IBTA volume 1,
	// 9.2.1); these are those of RC with its class bits.
	UDXWriteOnly    Opcode = 0xCA
	UDXReadRequest  Opcode = 0xCC
	UDXReadResponse Opcode = 0xD0
	UDXAck          Opcode = 0xD1
	UDXAtomicAck    Opcode = 0xD2
	UDXCmpSwap      Opcode = 0xD3
	UDXFetchAdd     Opcode = 0xD4

	// Selective acknowledgement of RC, between softrnics that have agreed on it:
	// see docs/reliability.md.
	RCSelectiveAck Opcode = 0xF1

	// NoOpcode is an invalid code, which Compose returns for undefined combinations.
	NoOpcode Opcode = 0xFF
)

// Class is the transport class an opcode belongs to.
type Class uint8

// Transport classes.
const (
	ClassRC  Class = iota // reliable connection
	ClassUC               // unreliable connection
	ClassUD               // unreliable datagram
	ClassCNP              // congestion notification, for QPs of every type
	ClassUDX              // RDMA over UD, a softrnic extension
	numClasses
)

var classNames = [numClasses]string{"RC", "UC", "UD", "CNP", "UDX"}

// String returns "RC", "UC", "UD", "CNP" or "UDX".
func (c Class) String() string {
	if c < numClasses {
		return classNames[c]
	}
	return "class " + strconv.Itoa(int(c))
}

// An Operation is the operation of a packet, independent of its transport class
// and its position in the message.
type Operation uint8

// Operations.
const (
	OpSend Operation = iota
	OpWrite
	OpReadRequest
	OpReadResponse
	OpAck
	OpAtomicAck
	OpCmpSwap
	OpFetchAdd
	OpCNP
	OpFlush
	OpAtomicWrite
	OpSelectiveAck
	numOperations
)

var operationNames = [numOperations]string{
	"SEND", "WRITE", "READ_REQUEST", "READ_RESPONSE", "ACKNOWLEDGE", "ATOMIC_ACKNOWLEDGE",
	"COMPARE_SWAP", "FETCH_ADD", "CNP", "FLUSH", "ATOMIC_WRITE", "SELECTIVE_ACKNOWLEDGE",
}

// String returns the name of the operation, such as "READ_REQUEST".
func (o Operation) String() string {
	if o < numOperations {
		return operationNames[o]
	}
	return "operation " + strconv.Itoa(int(o))
}

// A payloadRule is the permitted payload length of a packet.
type payloadRule uint8

const (
	payloadNone payloadRule = iota // ACK, READ request, atomics, CNP, FLUSH: no payload
	payloadMTU                     // FIRST, MIDDLE: exactly the path MTU
	payloadSome                    // LAST: 1 byte to the path MTU
	payloadAny                     // ONLY: nothing to the path MTU
	payloadWord                    // ATOMIC WRITE: 8 bytes
)

// Info describes an opcode. It is the only list of opcodes, used by codec,
// segmenter and responder.
type Info struct {
	Valid     bool // the adapter knows this opcode
	Name      string
	Opcode    Opcode
	Class     Class
	Operation Operation

	First, Last       bool // position in the message: ONLY has both, MIDDLE neither
	Request, Response bool // CNP is neither

	// Extended headers present, in the order of the wire.
	DETH, FETH, RETH, AtomicETH, AETH, AtomicAckETH, SackETH, Imm, IETH bool

	HeaderLen    int  // bytes of BTH and extended headers
	ConsumesRecv bool // consumes a receive WQE at this packet

	payload payloadRule
}

// PayloadRange returns the least and the most payload bytes of a packet on a path
// with an MTU of mtu bytes: twice the MTU for FIRST and MIDDLE, 1 and the MTU for
// LAST, 0 and the MTU for ONLY, 8 and 8 for ATOMIC WRITE, and 0 and 0 for packets
// without payload.
func (i *Info) PayloadRange(mtu int) (least, most int) {
	switch i.payload {
	case payloadNone:
		return 0, 0
	case payloadMTU:
		return mtu, mtu
	case payloadSome:
		return 1, mtu
	case payloadWord:
		return 8, 8
	default:
		return 0, mtu // payloadAny
	}
}

// Info returns the description of o. It is never nil and must not be modified. For
// an unknown opcode, Valid is false.
func (o Opcode) Info() *Info { return &opcodes[o] }

// String returns the name of the opcode, such as "RC_SEND_FIRST".
func (o Opcode) String() string {
	if i := &opcodes[o]; i.Valid {
		return i.Name
	}
	return "opcode 0x" + strconv.FormatUint(uint64(o), 16)
}

// Compose returns the opcode for a packet of operation op in class c at the
// given place of its message, with immediate data or with invalidate. It
// returns NoOpcode when no such packet exists.
func Compose(c Class, op Operation, first, last, imm, inv bool) Opcode {
	if c >= numClasses || op >= numOperations {
		return NoOpcode
	}
	return composed[c][op][shapeOf(first, last, imm, inv)]
}
