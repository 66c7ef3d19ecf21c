package capture

import (
	"io"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	addr4A = netip.MustParseAddrPort("10.0.0.1:4791")
	addr4B = netip.MustParseAddrPort("10.0.0.2:4791")
	addr6A = netip.MustParseAddrPort("[fd00::1]:4791")
	addr6B = netip.MustParseAddrPort("[fd00::2]:4791")
)

// wires is a network with two ends, of which the first one is captured.
type wires struct {
	network *memory.Network
	tap     *Tap
	peer    *memory.Conn
	read    *link.Datagrams
}

// start is the time at which the simulation starts, in nanoseconds since 1970.
const start = 1_700_000_000_123_456_789

func connect(t testing.TB, a, b netip.AddrPort) *wires {
	n := memory.New(1)
	here, err := n.Attach(a, memory.Options{})
	require.NoError(t, err)
	peer, err := n.Attach(b, memory.Options{})
	require.NoError(t, err)
	tap := NewTap(here, func() int64 { return start + n.Now() })
	return &wires{n, tap, peer, link.NewDatagrams(8)}
}

// exchange sends a packet of every opcode in both directions, each opcode twice in a row, so that
// there are groups.
func (w *wires) exchange(t testing.TB) (packets int) {
	b := link.NewBatch(1 << 20)
	for _, way := range []struct {
		from, to link.Conn
	}{{w.tap, w.peer}, {w.peer, w.tap}} {
		b.Reset()
		path := &wire.Path{Dst: way.to.LocalAddr(), TrafficClass: 0x6A}
		for code := range 256 {
			if wire.Opcode(code).Info().Valid {
				addPacket(b, path, wire.Opcode(code), 0)
				addPacket(b, path, wire.Opcode(code), 1)
				packets += 2
			}
		}
		require.NoError(t, way.from.WriteBatch(b))
		w.network.AdvanceTo(w.network.Now() + 1000)
		for n := 1; n > 0; {
			var err error
			n, err = way.to.ReadBatch(w.read)
			require.NoError(t, err)
		}
	}
	return packets
}

// addPacket appends a well-formed packet to a batch.
func addPacket(b *link.Batch, to *wire.Path, op wire.Opcode, psn wire.PSN) {
	info := op.Info()
	least, most := info.PayloadRange(256)
	payload := max(least, min(61, most))
	pad := wire.PadFor(payload)
	if op == wire.CNP {
		wire.PutCNP(b.Next(to, wire.CNPLen), 7)
		return
	}
	pkt := b.Next(to, info.HeaderLen+payload+pad+wire.ICRCLen)
	clear(pkt)
	h := wire.BTH{Opcode: op, PKey: wire.DefaultPKey, DestQPN: 7, PSN: psn, Pad: uint8(pad)}
	h.Put(pkt)
	at := pkt[wire.BTHLen:]
	if info.DETH {
		wire.DETH{QKey: 0x11111111, SrcQPN: 8}.Put(at)
	}
	if info.RETH {
		wire.RETH{VA: 0x1000, RKey: 0x1234, Length: uint32(payload)}.Put(at)
	}
	if info.AtomicETH {
		wire.AtomicETH{VA: 0x1000, RKey: 0x1234, SwapAdd: 1}.Put(at)
	}
	if info.AETH {
		wire.AETH{Syndrome: wire.AckSyndrome(wire.CreditUnlimited), MSN: 1}.Put(at)
	}
	for i := range payload {
		pkt[info.HeaderLen+i] = byte(i)
	}
}

// frame is a parsed packet of a capture.
type frame struct {
	Interface string
	Time      int64
	Inbound   bool
	Comments  []string
	Src, Dst  netip.AddrPort
	TOS       uint8
	ID        uint16
	Data      []byte
}

// parse reads a capture and checks lengths and checksums of all headers.
func parse(t testing.TB, r io.Reader) (all []frame, stats *pcapgo.NgInterfaceStatistics) {
	t.Helper()
	options := pcapgo.DefaultNgReaderOptions
	options.StatisticsCallback = func(_ int, s pcapgo.NgInterfaceStatistics) { stats = &s }
	ng, err := pcapgo.NewNgReader(r, options)
	require.NoError(t, err)
	for {
		data, info, packetOptions, err := ng.ReadPacketDataWithOptions()
		if err == io.EOF {
			return all, stats
		}
		require.NoError(t, err)
		require.Equal(t, layers.LinkTypeRaw, ng.LinkType())
		intf, err := ng.Interface(info.InterfaceIndex)
		require.NoError(t, err)
		f := frame{
			Interface: intf.Name, Time: info.Timestamp.UnixNano(),
			Comments: packetOptions.Comments,
			Inbound:  packetOptions.Flags.Direction == pcapgo.NgEpbFlagDirectionInbound,
		}
		p := gopacket.NewPacket(data, layers.LinkTypeRaw, gopacket.Default)
		udp := p.TransportLayer().(*layers.UDP)
		var src, dst netip.Addr
		switch ip := p.NetworkLayer().(type) {
		case *layers.IPv4:
			src, _ = netip.AddrFromSlice(ip.SrcIP)
			dst, _ = netip.AddrFromSlice(ip.DstIP)
			f.TOS, f.ID = ip.TOS, ip.Id
			require.Equal(t, len(data), int(ip.Length))
			require.Equal(t, layers.IPv4DontFragment, ip.Flags)
			require.EqualValues(t, 64, ip.TTL)
			require.EqualValues(t, 0xFFFF, headerSum(data[:20]), "checksum")
			require.Zero(t, udp.Checksum)
		case *layers.IPv6:
			src, _ = netip.AddrFromSlice(ip.SrcIP)
			dst, _ = netip.AddrFromSlice(ip.DstIP)
			f.TOS = ip.TrafficClass
			require.Equal(t, len(data)-40, int(ip.Length))
			require.EqualValues(t, 64, ip.HopLimit)
			require.NoError(t, udp.SetNetworkLayerForChecksum(ip))
			err, result := udp.VerifyChecksum()
			require.NoError(t, err)
			require.True(t, result.Valid, "%+v", result)
			require.NotZero(t, udp.Checksum)
		}
		require.Equal(t, 8+len(udp.Payload), int(udp.Length))
		f.Src = netip.AddrPortFrom(src, uint16(udp.SrcPort))
		f.Dst = netip.AddrPortFrom(dst, uint16(udp.DstPort))
		f.Data = udp.Payload
		all = append(all, f)
	}
}

// headerSum returns the one's complement sum of a header, 0xFFFF if its checksum is valid.
func headerSum(b []byte) (sum uint32) {
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	return sum&0xFFFF + sum>>16
}
