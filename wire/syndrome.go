package wire

import (
	"math"
	"strconv"
)

// Syndrome is the first byte of the AETH: the kind in bits 6..5, a value in
// bits 4..0. Bit 7 is reserved.
//
//	0 0 0 c c c c c   ACK, end-to-end credit code
//	0 0 1 t t t t t   RNR NAK, timer code
//	0 1 1 n n n n n   NAK, reason
//
// Source: Linux, drivers/infiniband/sw/rxe/rxe_hdr.h.
type Syndrome uint8

// NAK syndromes.
const (
	NakPSNSequence       Syndrome = 0x60 // a packet is missing: retransmit from the PSN of the NAK on
	NakInvalidRequest    Syndrome = 0x61 // malformed, out of order, or not permitted on this QP
	NakRemoteAccess      Syndrome = 0x62 // key, address range or access flags forbid it
	NakRemoteOperational Syndrome = 0x63 // the responder could not execute the request
	NakInvalidRD         Syndrome = 0x64 // reliable datagram only
)

// A SyndromeKind is the type of acknowledgement that a syndrome encodes.
type SyndromeKind uint8

// Syndrome kinds.
const (
	KindAck SyndromeKind = iota
	KindRNR
	KindReserved
	KindNAK
)

// AckSyndrome returns the syndrome of an ACK with an end-to-end credit code.
func AckSyndrome(credit uint8) Syndrome { return Syndrome(credit & 31) }

// RNRSyndrome returns the syndrome of an RNR NAK with a timer code.
func RNRSyndrome(timer uint8) Syndrome { return 0x20 | Syndrome(timer&31) }

// Kind returns the kind of the syndrome.
func (s Syndrome) Kind() SyndromeKind {
	if s&0x80 != 0 {
		return KindReserved
	}
	return SyndromeKind(s >> 5)
}

// Value returns the low five bits: credit code, timer code or NAK reason.
func (s Syndrome) Value() uint8 { return uint8(s & 31) }

// String describes the syndrome in words.
func (s Syndrome) String() string {
	switch s {
	case NakPSNSequence:
		return "NAK PSN sequence error"
	case NakInvalidRequest:
		return "NAK invalid request"
	case NakRemoteAccess:
		return "NAK remote access error"
	case NakRemoteOperational:
		return "NAK remote operational error"
	case NakInvalidRD:
		return "NAK invalid RD request"
	}
	v := strconv.Itoa(int(s.Value()))
	switch s.Kind() {
	case KindAck:
		if n, unlimited := Credits(s.Value()); !unlimited {
			return "ACK with " + strconv.Itoa(n) + " credits"
		}
		return "ACK"
	case KindRNR:
		return "RNR NAK timer " + v
	case KindNAK:
		return "NAK reserved reason " + v
	}
	return "reserved syndrome 0x" + strconv.FormatUint(uint64(s), 16)
}

// CreditUnlimited is the credit code of a responder without end-to-end flow
// control.
const CreditUnlimited = 31

// credits is the table of end-to-end credit codes 0..30.
// Source: Linux, drivers/infiniband/sw/rdmavt/rc.c.
var credits = [CreditUnlimited]uint16{
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
}

// CreditCode returns the code of the largest number of credits up to n, which is not
// CreditUnlimited.
func CreditCode(n int) uint8 {
	lo, hi := 0, len(credits) // credits[lo] <= n < credits[hi]
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; int(credits[mid]) <= n {
			lo = mid
		} else {
			hi = mid
		}
	}
	return uint8(lo)
}

// Credits returns the number of receive WQEs that a credit code advertises.
func Credits(code uint8) (n int, unlimited bool) {
	if code &= 31; code != CreditUnlimited {
		return int(credits[code]), false
	}
	return math.MaxInt, true
}

// rnrTimers is the table of RNR NAK timer codes in units of 10 microseconds.
// Code 0 is the longest wait, not the shortest.
// Source: Linux, include/rdma/ib_verbs.h.
var rnrTimers = [32]uint32{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

const rnrUnit = 10_000 // nanoseconds

// RNRNanos returns the time in nanoseconds that a requester must wait after an RNR NAK
// with this timer code.
func RNRNanos(code uint8) int64 { return int64(rnrTimers[code&31]) * rnrUnit }
