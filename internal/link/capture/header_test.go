package capture

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/wire"
)

// frames is a Recorder that keeps the frames a file would contain.
type frames struct{ list [][]byte }

func (f *frames) Record(p *Packet) { f.list = append(f.list, appendFrame(nil, p, 0)) }

// TestHeaderFields checks that traffic class, hop limit and flow label of a path are in the frames
// of sender and receiver, with valid checksums.
func TestHeaderFields(t *testing.T) {
	for _, ends := range [][2]netip.AddrPort{{addr4A, addr4B}, {addr6A, addr6B}} {
		for _, to := range []wire.Path{{}, {TrafficClass: 0x68}, {HopLimit: 7}, {HopLimit: 255, FlowLabel: 0xfffff, TrafficClass: 0xff}, {FlowLabel: 1}} {
			net := memory.NewLive()
			var taps [2]*Tap
			var seen [2]frames
			for i, at := range ends {
				c, err := net.Attach(at, memory.Options{})
				require.NoError(t, err)
				taps[i] = NewTap(c, func() int64 { return 1 })
				taps[i].Add(&seen[i])
			}
			to.Dst = ends[1]
			b := link.NewBatch(4096)
			for range 2 {
				wire.PutCNP(b.Next(&to, wire.CNPLen), 7)
			}
			require.NoError(t, taps[0].WriteBatch(b))
			_, err := taps[1].ReadBatch(link.NewDatagrams(4))
			require.NoError(t, err)
			hops := to.HopLimit
			if hops == 0 {
				hops = 64
			}
			for _, s := range seen {
				require.Len(t, s.list, 2)
				for _, frame := range s.list {
					if ends[0].Addr().Is4() {
						ip := gopacket.NewPacket(frame, layers.LayerTypeIPv4, gopacket.Default).Layer(layers.LayerTypeIPv4).(*layers.IPv4)
						require.Equal(t, []uint8{to.TrafficClass, hops}, []uint8{ip.TOS, ip.TTL})
						again := gopacket.NewSerializeBuffer()
						require.NoError(t, ip.SerializeTo(again, gopacket.SerializeOptions{ComputeChecksums: true}))
						require.True(t, bytes.HasPrefix(frame, again.Bytes()))
						continue
					}
					ip := gopacket.NewPacket(frame, layers.LayerTypeIPv6, gopacket.Default).Layer(layers.LayerTypeIPv6).(*layers.IPv6)
					require.Equal(t, []any{to.TrafficClass, hops, to.FlowLabel}, []any{ip.TrafficClass, ip.HopLimit, ip.FlowLabel})
				}
			}
		}
	}
}
