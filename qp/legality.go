package qp

import (
	"github.com/softrnic/softrnic/verbs"
)

// supportsOpcode reports whether queue pairs of type t support the opcode.
func supportsOpcode(t verbs.QPType, op verbs.WROpcode) bool {
	switch op {
	case verbs.WRSend, verbs.WRSendWithImm:
		return true
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm, verbs.WRLocalInv, verbs.WRBindMW:
		return t == verbs.RC || t == verbs.UC
	case verbs.WRRDMARead, verbs.WRAtomicCmpSwap, verbs.WRAtomicFetchAdd, verbs.WRSendWithInv:
		return t == verbs.RC
	}
	return false
}

// maySend reports whether requests can be posted in state s. In SQE and ERR
// they are flushed.
func maySend(s verbs.QPState) bool { return s == sRTS || s == sSQD || s == sSQE || s == sErr }

// mayRecv reports whether receives can be posted in state s.
func mayRecv(s verbs.QPState) bool { return s != sReset }

// acceptsPackets reports whether packets are processed in state s.
func acceptsPackets(s verbs.QPState) bool { return s == sRTR || s == sRTS || s == sSQD || s == sSQE }
