package wire

// A shape is the position of a packet in its message and its trailing header: the
// part of an opcode that the segmenter chooses for each packet.
type shape uint8

const (
	first shape = 1 << iota
	last
	imm
	inv
	numShapes = 1 << iota

	middle shape = 0
	only         = first | last
)

func shapeOf(isFirst, isLast, hasImm, hasInv bool) shape {
	var s shape
	if isFirst {
		s |= first
	}
	if isLast {
		s |= last
	}
	if hasImm {
		s |= imm
	}
	if hasInv {
		s |= inv
	}
	return s
}

// An ext is the set of extended headers that are independent of the shape.
type ext uint8

const (
	deth ext = 1 << iota
	reth
	atomicETH
	aeth
	atomicAckETH
	reserved16 // the 16 reserved bytes of a CNP
	sackETH
	feth
	none ext = 0
)

// opcodes is the one table of opcodes.
var opcodes = func() (t [256]Info) {
	for i := range t {
		t[i].Opcode = Opcode(i)
	}
	for _, r := range []struct {
		code    Opcode
		name    string
		class   Class
		op      Operation
		shape   shape
		ext     ext
		payload payloadRule
		recv    bool
	}{
		{RCSendFirst, "RC_SEND_FIRST", ClassRC, OpSend, first, none, payloadMTU, true},
		{RCSendMiddle, "RC_SEND_MIDDLE", ClassRC, OpSend, middle, none, payloadMTU, false},
		{RCSendLast, "RC_SEND_LAST", ClassRC, OpSend, last, none, payloadSome, false},
		{RCSendLastImm, "RC_SEND_LAST_IMM", ClassRC, OpSend, last | imm, none, payloadSome, false},
		{RCSendOnly, "RC_SEND_ONLY", ClassRC, OpSend, only, none, payloadAny, true},
		{RCSendOnlyImm, "RC_SEND_ONLY_IMM", ClassRC, OpSend, only | imm, none, payloadAny, true},
		{RCWriteFirst, "RC_WRITE_FIRST", ClassRC, OpWrite, first, reth, payloadMTU, false},
		{RCWriteMiddle, "RC_WRITE_MIDDLE", ClassRC, OpWrite, middle, none, payloadMTU, false},
		{RCWriteLast, "RC_WRITE_LAST", ClassRC, OpWrite, last, none, payloadSome, false},
		{RCWriteLastImm, "RC_WRITE_LAST_IMM", ClassRC, OpWrite, last | imm, none, payloadSome, true},
		{RCWriteOnly, "RC_WRITE_ONLY", ClassRC, OpWrite, only, reth, payloadAny, false},
		{RCWriteOnlyImm, "RC_WRITE_ONLY_IMM", ClassRC, OpWrite, only | imm, reth, payloadAny, true},
		{RCReadRequest, "RC_READ_REQUEST", ClassRC, OpReadRequest, only, reth, payloadNone, false},
		{RCReadRespFirst, "RC_READ_RESPONSE_FIRST", ClassRC, OpReadResponse, first, aeth, payloadMTU, false},
		{RCReadRespMiddle, "RC_READ_RESPONSE_MIDDLE", ClassRC, OpReadResponse, middle, none, payloadMTU, false},
		{RCReadRespLast, "RC_READ_RESPONSE_LAST", ClassRC, OpReadResponse, last, aeth, payloadSome, false},
		{RCReadRespOnly, "RC_READ_RESPONSE_ONLY", ClassRC, OpReadResponse, only, aeth, payloadAny, false},
		{RCAck, "RC_ACKNOWLEDGE", ClassRC, OpAck, only, aeth, payloadNone, false},
		{RCAtomicAck, "RC_ATOMIC_ACKNOWLEDGE", ClassRC, OpAtomicAck, only, aeth | atomicAckETH, payloadNone, false},
		{RCCmpSwap, "RC_COMPARE_SWAP", ClassRC, OpCmpSwap, only, atomicETH, payloadNone, false},
		{RCFetchAdd, "RC_FETCH_ADD", ClassRC, OpFetchAdd, only, atomicETH, payloadNone, false},
		{RCSendLastInv, "RC_SEND_LAST_INV", ClassRC, OpSend, last | inv, none, payloadSome, false},
		{RCSendOnlyInv, "RC_SEND_ONLY_INV", ClassRC, OpSend, only | inv, none, payloadAny, true},
		{RCFlush, "RC_FLUSH", ClassRC, OpFlush, only, feth | reth, payloadNone, false},
		{RCAtomicWrite, "RC_ATOMIC_WRITE", ClassRC, OpAtomicWrite, only, reth, payloadWord, false},

		{UCSendFirst, "UC_SEND_FIRST", ClassUC, OpSend, first, none, payloadMTU, true},
		{UCSendMiddle, "UC_SEND_MIDDLE", ClassUC, OpSend, middle, none, payloadMTU, false},
		{UCSendLast, "UC_SEND_LAST", ClassUC, OpSend, last, none, payloadSome, false},
		{UCSendLastImm, "UC_SEND_LAST_IMM", ClassUC, OpSend, last | imm, none, payloadSome, false},
		{UCSendOnly, "UC_SEND_ONLY", ClassUC, OpSend, only, none, payloadAny, true},
		{UCSendOnlyImm, "UC_SEND_ONLY_IMM", ClassUC, OpSend, only | imm, none, payloadAny, true},
		{UCWriteFirst, "UC_WRITE_FIRST", ClassUC, OpWrite, first, reth, payloadMTU, false},
		{UCWriteMiddle, "UC_WRITE_MIDDLE", ClassUC, OpWrite, middle, none, payloadMTU, false},
		{UCWriteLast, "UC_WRITE_LAST", ClassUC, OpWrite, last, none, payloadSome, false},
		{UCWriteLastImm, "UC_WRITE_LAST_IMM", ClassUC, OpWrite, last | imm, none, payloadSome, true},
		{UCWriteOnly, "UC_WRITE_ONLY", ClassUC, OpWrite, only, reth, payloadAny, false},
		{UCWriteOnlyImm, "UC_WRITE_ONLY_IMM", ClassUC, OpWrite, only | imm, reth, payloadAny, true},

		{UDSendOnly, "UD_SEND_ONLY", ClassUD, OpSend, only, deth, payloadAny, true},
		{UDSendOnlyImm, "UD_SEND_ONLY_IMM", ClassUD, OpSend, only | imm, deth, payloadAny, true},

		{UDXWriteOnly, "UDX_WRITE_ONLY", ClassUDX, OpWrite, only, deth | reth, payloadAny, false},
		{UDXReadRequest, "UDX_READ_REQUEST", ClassUDX, OpReadRequest, only, deth | reth, payloadNone, false},
		{UDXReadResponse, "UDX_READ_RESPONSE", ClassUDX, OpReadResponse, only, deth | reth, payloadAny, false},
		{UDXAck, "UDX_ACKNOWLEDGE", ClassUDX, OpAck, only, deth | aeth | sackETH, payloadNone, false},
		{UDXAtomicAck, "UDX_ATOMIC_ACKNOWLEDGE", ClassUDX, OpAtomicAck, only, deth | aeth | atomicAckETH, payloadNone, false},
		{UDXCmpSwap, "UDX_COMPARE_SWAP", ClassUDX, OpCmpSwap, only, deth | atomicETH, payloadNone, false},
		{UDXFetchAdd, "UDX_FETCH_ADD", ClassUDX, OpFetchAdd, only, deth | atomicETH, payloadNone, false},

		{RCSelectiveAck, "RC_SELECTIVE_ACKNOWLEDGE", ClassRC, OpSelectiveAck, only, aeth, payloadAny, false},

		{CNP, "CNP", ClassCNP, OpCNP, only, reserved16, payloadNone, false},
	} {
		i := &t[r.code]
		i.Valid, i.Name, i.Class, i.Operation = true, r.name, r.class, r.op
		i.First, i.Last = r.shape&first != 0, r.shape&last != 0
		i.payload, i.ConsumesRecv = r.payload, r.recv

		i.HeaderLen = BTHLen
		header := func(flag *bool, present bool, size int) {
			if present {
				*flag = true
				i.HeaderLen += size
			}
		}
		header(&i.DETH, r.ext&deth != 0, DETHLen)
		header(&i.FETH, r.ext&feth != 0, FETHLen)
		header(&i.RETH, r.ext&reth != 0, RETHLen)
		header(&i.AtomicETH, r.ext&atomicETH != 0, AtomicETHLen)
		header(&i.AETH, r.ext&aeth != 0, AETHLen)
		header(&i.AtomicAckETH, r.ext&atomicAckETH != 0, AtomicAckETHLen)
		header(&i.SackETH, r.ext&sackETH != 0, SackETHLen)
		header(&i.Imm, r.shape&imm != 0, ImmLen)
		header(&i.IETH, r.shape&inv != 0, IETHLen)
		if r.ext&reserved16 != 0 {
			i.HeaderLen += cnpReserved
		}

		i.Response = i.AETH || i.Operation == OpReadResponse
		i.Request = !i.Response && i.Operation != OpCNP
	}
	return t
}()

// composed is the table read backwards: class, operation and shape to opcode.
var composed = func() (x [numClasses][numOperations][numShapes]Opcode) {
	for c := range x {
		for o := range x[c] {
			for s := range x[c][o] {
				x[c][o][s] = NoOpcode
			}
		}
	}
	for code := range opcodes {
		if i := &opcodes[code]; i.Valid {
			x[i.Class][i.Operation][shapeOf(i.First, i.Last, i.Imm, i.IETH)] = i.Opcode
		}
	}
	return x
}()
