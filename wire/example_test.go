package wire_test

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/wire"
)

// An RDMA WRITE of five bytes, encoded by one adapter and decoded by another.
func Example() {
	src, dst := netip.MustParseAddrPort("192.0.2.1:4791"), netip.MustParseAddrPort("192.0.2.2:4791")
	payload := []byte("hello")

	op := wire.Compose(wire.ClassRC, wire.OpWrite, true, true, false, false)
	head, pad := op.Info().HeaderLen, wire.PadFor(len(payload))
	pkt := make([]byte, head+len(payload)+pad+wire.ICRCLen)

	bth := wire.BTH{Opcode: op, Pad: uint8(pad), PKey: wire.DefaultPKey, DestQPN: 0x12, AckReq: true, PSN: 1000}
	bth.Put(pkt)
	wire.RETH{VA: 0x7000, RKey: 0x1234, Length: uint32(len(payload))}.Put(pkt[wire.BTHLen:])
	copy(pkt[head:], payload)
	out := wire.NewICRC(src, dst)
	out.Put(pkt, 0)

	in := wire.NewICRC(src, dst)
	result, _ := in.Check(pkt, 0)
	fmt.Println("ICRC", result)

	var p wire.Packet
	if drop := p.Parse(pkt); drop != wire.DropNone {
		fmt.Println(drop, drop.Description())
		return
	}
	fmt.Println(p.BTH.Opcode, "to QP", p.BTH.DestQPN, "PSN", p.BTH.PSN)
	if p.Info.RETH {
		fmt.Printf("%q to address %#x\n", p.Payload, p.RETH().VA)
	}
	// Output:
	// ICRC exact
	// RC_WRITE_ONLY to QP 18 PSN 1000
	// "hello" to address 0x7000
}

func ExampleCompose() {
	// A SEND with immediate data, three packets long.
	const n = 3
	for i := range n {
		first, last := i == 0, i == n-1
		fmt.Println(wire.Compose(wire.ClassUC, wire.OpSend, first, last, last, false))
	}
	// UC has no READ.
	fmt.Println(wire.Compose(wire.ClassUC, wire.OpReadRequest, true, true, false, false).Info().Valid)
	// Output:
	// UC_SEND_FIRST
	// UC_SEND_MIDDLE
	// UC_SEND_LAST_IMM
	// false
}

func ExamplePSN_Sub() {
	last := wire.PSN(0xFFFFFF)
	next := last.Add(1)
	fmt.Println(next, next.Sub(last), last.Less(next))
	// Output: 0 1 true
}

// A receiver on a UDP socket does not see the IPv4 identification, but can tell whether one exists
// that explains the ICRC.
func ExampleICRC_Check() {
	src, dst := netip.MustParseAddrPort("198.51.100.2:49152"), netip.MustParseAddrPort("198.51.100.1:4791")
	s := wire.NewICRC(src, dst)
	cnp := make([]byte, wire.CNPLen)
	wire.PutCNP(cnp, 17)
	s.Put(cnp, 0xC60A) // the peer's kernel chose this one

	fmt.Println(s.Check(cnp, 0))
	cnp[7] ^= 1
	fmt.Println(s.Check(cnp, 0))
	// Output:
	// member 50698
	// bad 0
}

func ExampleSyndrome() {
	for _, s := range []wire.Syndrome{
		wire.AckSyndrome(wire.CreditUnlimited),
		wire.AckSyndrome(wire.CreditCode(100)),
		wire.RNRSyndrome(14),
		wire.NakRemoteAccess,
	} {
		fmt.Printf("0x%02x %v\n", uint8(s), s)
	}
	fmt.Println(wire.RNRNanos(14), "ns")
	// Output:
	// 0x1f ACK
	// 0x0d ACK with 96 credits
	// 0x2e RNR NAK timer 14
	// 0x62 NAK remote access error
	// 1280000 ns
}
