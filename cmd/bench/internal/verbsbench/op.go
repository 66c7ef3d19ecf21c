package verbsbench

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// An Op is a transport and an operation, and the name of its series.
type Op string

const (
	RCWrite  Op = "rc-write"
	RCSend   Op = "rc-send"
	RCRead   Op = "rc-read"
	RCAtomic Op = "rc-atomic" // fetch-and-add of 8 bytes
	UCWrite  Op = "uc-write"
	UDSend   Op = "ud-send"
)

// An opKind has the verbs parameters of an Op.
type opKind struct {
	transport verbs.QPType
	opcode    verbs.WROpcode
	withImm   verbs.WROpcode // variant with an immediate, if it exists
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
		return k, fmt.Errorf("verbsbench: unknown operation %q", o)
	}
	return k, nil
}

// isFetch reports whether the operation returns data to the requester without a program at the
// target.
func (k opKind) isFetch() bool {
	return k.opcode == verbs.WRRDMARead || k.opcode == verbs.WRAtomicFetchAdd
}

// isWrite reports whether the requester names the address of the data.
func (k opKind) isWrite() bool { return k.opcode == verbs.WRRDMAWrite }

// isAcked reports whether a completion confirms the arrival of the data.
func (k opKind) isAcked() bool { return k.transport == verbs.RC }

// ParseOps converts words to operations. An unknown operation fails when it is used.
func ParseOps(words []string) []Op {
	ops := make([]Op, len(words))
	for i, w := range words {
		ops[i] = Op(w)
	}
	return ops
}
