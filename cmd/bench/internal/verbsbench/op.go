package verbsbench

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// An Op is a transport and an operation, in the words that name a series.
type Op string

const (
	RCWrite  Op = "rc-write"
	RCSend   Op = "rc-send"
	RCRead   Op = "rc-read"
	RCAtomic Op = "rc-atomic" // fetch-and-add of 8 bytes
	UCWrite  Op = "uc-write"
	UDSend   Op = "ud-send"
)

// opKind is what an Op asks of the verbs.
type opKind struct {
	transport verbs.QPType
	opcode    verbs.WROpcode
	withImm   verbs.WROpcode // the same with an immediate, where there is one
}

var opKinds = map[Op]opKind{
	RCWrite:  {verbs.RC, verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm},
	RCSend:   {verbs.RC, verbs.WRSend, verbs.WRSendWithImm},
	RCRead:   {verbs.RC, verbs.WRRDMARead, verbs.WRRDMARead},
	RCAtomic: {verbs.RC, verbs.WRAtomicFetchAdd, verbs.WRAtomicFetchAdd},
	UCWrite:  {verbs.UC, verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm},
	UDSend:   {verbs.UD, verbs.WRSend, verbs.WRSendWithImm},
}

func (o Op) lookupKind() (opKind, error) {
	k, ok := opKinds[o]
	if !ok {
		return k, fmt.Errorf("verbsbench: no operation %q", o)
	}
	return k, nil
}

// isFetch reports whether the answer comes by itself, to the requester alone.
func (k opKind) isFetch() bool {
	return k.opcode == verbs.WRRDMARead || k.opcode == verbs.WRAtomicFetchAdd
}

// isWrite reports whether the data goes to an address that the requester names.
func (k opKind) isWrite() bool { return k.opcode == verbs.WRRDMAWrite }

// isAcked reports whether a completion says that the data has arrived.
func (k opKind) isAcked() bool { return k.transport == verbs.RC }

// ParseOps are those words as operations; what is none of them fails when it is
// used.
func ParseOps(words []string) []Op {
	ops := make([]Op, len(words))
	for i, w := range words {
		ops[i] = Op(w)
	}
	return ops
}
