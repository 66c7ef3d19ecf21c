package capture

import (
	"encoding/binary"
	"io"
	"net/netip"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softrnic/softrnic/wire"
)

// pcapng writes packets in the pcapng format, with the IP and UDP headers they
// had on the wire. Each tap is an interface of its own. It belongs to one
// goroutine.
type pcapng struct {
	w          io.Writer
	ng         *pcapgo.NgWriter // nil until the first interface is known
	interfaces map[netip.AddrPort]int
	last       time.Time // of the packets
	frame      []byte
	flags      pcapgo.NgEpbFlags
}

func newPcapng(w io.Writer) *pcapng {
	return &pcapng{w: w, interfaces: make(map[netip.AddrPort]int)}
}

// writePacket writes a packet.
func (f *pcapng) writePacket(p *Packet) error {
	index, err := f.interfaceOf(p.localAddr())
	if err != nil {
		return err
	}
	id, comment := p.ID, ""
	if p.Direction == In {
		id, comment = p.checkICRC()
	}
	f.frame = appendFrame(f.frame[:0], p, id)
	f.flags.Direction = pcapgo.NgEpbFlagDirectionInbound
	if p.Direction == Out {
		f.flags.Direction = pcapgo.NgEpbFlagDirectionOutbound
	}
	options := pcapgo.NgPacketOptions{Flags: &f.flags}
	if comment != "" {
		options.Comments = []string{comment}
	}
	f.last = time.Unix(0, p.Time)
	return f.ng.WritePacketWithOptions(gopacket.CaptureInfo{
		Timestamp:      f.last,
		CaptureLength:  len(f.frame),
		Length:         len(f.frame),
		InterfaceIndex: index,
	}, f.frame, options)
}

// checkICRC returns the IPv4 identification of a received packet, and a comment if
// its ICRC is wrong.
func (p *Packet) checkICRC() (id uint16, comment string) {
	s := wire.NewSealer(p.Src, p.Dst)
	result, id := s.Check(p.Data, p.ID)
	switch {
	case result == wire.ICRCExact, result == wire.ICRCMember && p.GuessedID:
		return id, ""
	case result == wire.ICRCMember:
		return p.ID, "ICRC of another IPv4 identification"
	}
	return p.ID, "ICRC wrong"
}

// interfaceOf returns the number of a tap's interface, and writes its block on
// first use.
func (f *pcapng) interfaceOf(tap netip.AddrPort) (int, error) {
	index, ok := f.interfaces[tap]
	if ok {
		return index, nil
	}
	name := "softrnic"
	if tap.IsValid() {
		name += " " + tap.String()
	}
	description := pcapgo.NgInterface{
		Name:        name,
		Description: "RoCE v2; IP and UDP headers are reconstructed",
		LinkType:    layers.LinkTypeRaw,
	}
	var err error
	if f.ng == nil {
		options := pcapgo.DefaultNgWriterOptions
		options.SectionInfo.Application = "softrnic"
		f.ng, err = pcapgo.NewNgWriterInterface(f.w, description, options)
	} else {
		index, err = f.ng.AddInterface(description)
	}
	if err == nil {
		f.interfaces[tap] = index
	}
	return index, err
}

// flush writes buffered blocks.
func (f *pcapng) flush() error {
	if f.ng == nil {
		return nil
	}
	return f.ng.Flush()
}

// finish ends the file with the number of dropped packets, all at the first
// interface, as pcapng has no field for the sum. A file without packets is
// valid, too.
func (f *pcapng) finish(recorded, dropped uint64) error {
	if f.ng == nil {
		if _, err := f.interfaceOf(netip.AddrPort{}); err != nil {
			return err
		}
	}
	err := f.ng.WriteInterfaceStats(0, pcapgo.NgInterfaceStatistics{
		LastUpdate:      f.last,
		PacketsReceived: recorded + dropped,
		PacketsDropped:  dropped,
	})
	if err != nil {
		return err
	}
	return f.ng.Flush()
}

// appendFrame appends a packet with its IP and UDP headers.
func appendFrame(b []byte, p *Packet, id uint16) []byte {
	var grh [wire.GRHLen]byte
	udpLen := wire.UDPLen + len(p.Data)
	wire.PutGRH(grh[:], p.Src.Addr(), p.Dst.Addr(), p.TrafficClass, udpLen)
	wire.SetGRHHops(grh[:], p.HopLimit, p.FlowLabel)
	v4 := p.Src.Addr().Unmap().Is4()
	if v4 {
		ip := grh[wire.GRHLen-wire.IPv4Len:]
		setIPv4ID(ip, id)
		b = append(b, ip...)
	} else {
		b = append(b, grh[:]...)
	}
	udp := len(b)
	b = binary.BigEndian.AppendUint16(b, p.Src.Port())
	b = binary.BigEndian.AppendUint16(b, p.Dst.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(udpLen))
	b = append(b, 0, 0) // checksum: IPv4 may do without
	b = append(b, p.Data...)
	if !v4 {
		binary.BigEndian.PutUint16(b[udp+6:], udpChecksum(grh[8:], b[udp:]))
	}
	return b
}

// setIPv4ID sets the identification of an IPv4 header where it is 0, and corrects
// the checksum (RFC 1624).
func setIPv4ID(ip []byte, id uint16) {
	binary.BigEndian.PutUint16(ip[4:], id)
	sum := uint32(^binary.BigEndian.Uint16(ip[10:])) + uint32(id)
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
}

// udpChecksum returns the checksum of a UDP datagram between two IPv6 addresses
// (RFC 8200, 8.1).
func udpChecksum(addresses, datagram []byte) uint16 {
	const protoUDP = 17
	sum := uint64(len(datagram) + protoUDP)
	for _, b := range [][]byte{addresses, datagram} {
		for ; len(b) >= 2; b = b[2:] {
			sum += uint64(b[0])<<8 | uint64(b[1])
		}
		if len(b) == 1 {
			sum += uint64(b[0]) << 8
		}
	}
	for sum > 0xFFFF {
		sum = sum&0xFFFF + sum>>16
	}
	if sum == 0xFFFF {
		return 0xFFFF // 0 would be no checksum
	}
	return ^uint16(sum)
}
