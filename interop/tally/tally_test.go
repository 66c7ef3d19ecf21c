package tally_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/tally"
	"github.com/softrnic/softrnic/wire"
)

var (
	a = netip.MustParseAddr("192.0.2.1")
	b = netip.MustParseAddr("192.0.2.2")
)

// frame returns a packet of an opcode as on the cable. length is that of a READ, syndrome that of
// an acknowledgement.
func frame(t testing.TB, from, to netip.Addr, op wire.Opcode, psn wire.PSN, length uint32, s wire.Syndrome) []byte {
	info := op.Info()
	payload := 0
	if least, most := info.PayloadRange(1024); least > 0 {
		payload = most
	}
	raw := make([]byte, info.HeaderLen+payload+wire.ICRCLen)
	h := wire.BTH{Opcode: op, PKey: wire.DefaultPKey, DestQPN: 7, PSN: psn}
	h.Put(raw)
	if info.RETH {
		wire.RETH{Length: length}.Put(raw[wire.BTHLen:])
	}
	if info.AETH {
		wire.AETH{Syndrome: s}.Put(raw[wire.BTHLen:])
	}
	src, dst := netip.AddrPortFrom(from, 49152), netip.AddrPortFrom(to, 4791)
	sealer := wire.NewICRC(src, dst)
	const id = 77
	sealer.Put(raw, id)
	ip := &layers.IPv4{Version: 4, TTL: 64, Id: id, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	udp := &layers.UDP{SrcPort: 49152, DstPort: 4791}
	require.NoError(t, udp.SetNetworkLayerForChecksum(ip))
	buf := gopacket.NewSerializeBuffer()
	require.NoError(t, gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		&layers.Ethernet{SrcMAC: make(net.HardwareAddr, 6), DstMAC: make(net.HardwareAddr, 6), EthernetType: layers.EthernetTypeIPv4},
		ip, udp, gopacket.Payload(raw)))
	return buf.Bytes()
}

func TestTally(t *testing.T) {
	sum := tally.New(1024)
	add := func(f []byte) {
		t.Helper()
		require.NoError(t, sum.Add(f))
	}
	ack := wire.AckSyndrome(wire.CreditUnlimited)
	request := func(op wire.Opcode, psn wire.PSN, length uint32) { add(frame(t, a, b, op, psn, length, ack)) }
	answer := func(psn wire.PSN, s wire.Syndrome) { add(frame(t, b, a, wire.RCAck, psn, 0, s)) }

	const top = wire.PSN(wire.PSNMask)
	request(wire.RCSendOnly, top, 0)
	request(wire.RCReadRequest, 0, 2049) // consumes 0, 1, 2
	request(wire.RCReadRequest, 1, 1025) // retransmitted in part
	request(wire.RCSendFirst, 3, 0)
	request(wire.RCSendLast, 5, 0) // 4 is missing
	request(wire.RCSendLast, 5, 0)
	answer(4, wire.NakPSNSequence)
	request(wire.RCSendMiddle, 4, 0)
	request(wire.RCSendLast, 5, 0)
	answer(5, wire.RNRSyndrome(1))
	request(wire.RCSendLast, 5, 0)
	request(wire.RCReadRequest, 6, 0) // zero bytes, which consumes one PSN
	request(wire.RCWriteOnly, 8, 0)   // 7 is missing, a second gap
	answer(6, wire.NakRemoteAccess)

	got := sum.From(a)
	require.Equal(t, 11, got.Packets)
	require.Equal(t, 1, got.Duplicates)
	require.Equal(t, 2, got.Gaps)
	require.Equal(t, 3, got.Opcodes[wire.RCReadRequest])
	require.Zero(t, got.RNRNaks+got.SeqNaks+got.OtherNaks+got.BadICRC)
	got = sum.From(b)
	require.Equal(t, []int{3, 1, 1, 1}, []int{got.Packets, got.RNRNaks, got.SeqNaks, got.OtherNaks})
	require.Zero(t, got.Duplicates+got.Gaps)
}

// TestTallyOfRepeats checks that packets that the sender repeats before it gets the RNR NAK are not
// counted as duplicates.
func TestTallyOfRepeats(t *testing.T) {
	sum := tally.New(1024)
	request := func() { require.NoError(t, sum.Add(frame(t, a, b, wire.RCSendOnly, 5, 0, 0))) }
	answer := func(s wire.Syndrome) { require.NoError(t, sum.Add(frame(t, b, a, wire.RCAck, 5, 0, s))) }
	request()
	request()
	answer(wire.RNRSyndrome(1)) // in reply to both
	answer(wire.RNRSyndrome(1))
	require.Zero(t, sum.From(a).Duplicates)
	request()
	request()
	answer(wire.RNRSyndrome(1)) // in reply to the first
	answer(wire.AckSyndrome(31))
	request()
	require.Equal(t, 1, sum.From(a).Duplicates)
}

func TestTallyOfDamaged(t *testing.T) {
	sum := tally.New(1024)
	f := frame(t, a, b, wire.RCSendFirst, 1, 0, 0)
	f[len(f)-1] ^= 1
	require.NoError(t, sum.Add(f))
	require.Equal(t, 1, sum.From(a).BadICRC)
	require.Empty(t, sum.From(a).Opcodes)
	require.ErrorIs(t, sum.Add(f[:20]), tally.ErrNotRoCE)
	require.ErrorContains(t, sum.Add(f[:52]), "192.0.2.1") // in the middle of the BTH
}

// TestBegin checks that the loss of the first packet of a flow is counted.
func TestBegin(t *testing.T) {
	for _, known := range []bool{false, true} {
		sum := tally.New(1024)
		if known {
			sum.StartFlow(a, b, 7, 100)
		}
		ack := wire.AckSyndrome(wire.CreditUnlimited)
		require.NoError(t, sum.Add(frame(t, a, b, wire.RCSendMiddle, 101, 0, ack)))
		require.NoError(t, sum.Add(frame(t, b, a, wire.RCAck, 100, 0, wire.NakPSNSequence)))
		require.NoError(t, sum.Add(frame(t, a, b, wire.RCSendFirst, 100, 0, ack)))
		require.NoError(t, sum.Add(frame(t, a, b, wire.RCSendMiddle, 101, 0, ack)))
		gaps, duplicates := 0, 2
		if known {
			gaps, duplicates = 1, 0
		}
		require.Equal(t, gaps, sum.From(a).Gaps)
		require.Equal(t, duplicates, sum.From(a).Duplicates)
	}
}
