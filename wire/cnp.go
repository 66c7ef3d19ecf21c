package wire

const cnpReserved = 16

// CNPLen is the length of a congestion notification packet in bytes, BTH to
// ICRC.
const CNPLen = BTHLen + cnpReserved + ICRCLen

// PutCNP writes a congestion notification packet for the sender's QP destQPN to
// b, which must hold CNPLen bytes: all but the ICRC, which a Sealer adds.
//
//	BTH (opcode 0x81, BECN 1, PSN 0) | 16 zero bytes | ICRC
//
// Source: scapy, scapy/contrib/roce.py, and a capture from a ConnectX-4 Lx.
func PutCNP(b []byte, destQPN uint32) {
	b = b[:CNPLen]
	clear(b[BTHLen : CNPLen-ICRCLen])
	h := BTH{Opcode: CNP, PKey: DefaultPKey, BECN: true, DestQPN: destQPN}
	h.Put(b)
}
