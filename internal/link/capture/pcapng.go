package capture

import (
	"bufio"
	"encoding/binary"
	"io"
	"net/netip"

	"github.com/softrnic/softrnic/wire"
)

// pcapng writes packets in the pcapng format, with the IP and UDP headers they
// had on the wire. Each tap is an interface of its own. It belongs to one
// goroutine.
type pcapng struct {
	w          *bufio.Writer
	interfaces map[netip.AddrPort]int
	last       int64 // time of the last packet, nanoseconds since 1970
	frame      []byte
	block      block
}

func newPcapng(w io.Writer) *pcapng {
	return &pcapng{w: bufio.NewWriter(w), interfaces: make(map[netip.AddrPort]int)}
}

func (f *pcapng) writePacket(p *Packet) error {
	index, err := f.interfaceOf(p.localAddr())
	if err != nil {
		return err
	}
	id, comment, flags := p.ID, "", uint32(flagOutbound)
	if p.Direction == In {
		id, comment = p.checkICRC()
		flags = flagInbound
	}
	f.frame = appendFrame(f.frame[:0], p, id)
	f.last = p.Time
	f.block = appendPacket(f.block[:0], index, p.Time, f.frame, flags, comment)
	return f.writeBlock()
}

// writeBlock writes f.block.
func (f *pcapng) writeBlock() error {
	_, err := f.w.Write(f.block)
	return err
}

// checkICRC returns the IPv4 identification of a received packet, and a comment if
// its ICRC is wrong.
func (p *Packet) checkICRC() (id uint16, comment string) {
	s := wire.NewICRC(p.Src, p.Dst)
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
// first use, after the section header for the first interface.
func (f *pcapng) interfaceOf(tap netip.AddrPort) (int, error) {
	index, ok := f.interfaces[tap]
	if ok {
		return index, nil
	}
	name := "softrnic"
	if tap.IsValid() {
		name += " " + tap.String()
	}
	index = len(f.interfaces)
	if index == 0 {
		f.block = appendSection(f.block[:0], "softrnic")
		if err := f.writeBlock(); err != nil {
			return 0, err
		}
	}
	f.block = appendInterface(f.block[:0], name, "RoCE v2; IP and UDP headers are reconstructed")
	f.interfaces[tap] = index
	return index, f.writeBlock()
}

// flush writes buffered blocks.
func (f *pcapng) flush() error { return f.w.Flush() }

// finish ends the file with the number of dropped packets, all at the first
// interface, as pcapng has no field for the sum. A file without packets is
// valid, too.
func (f *pcapng) finish(recorded, dropped uint64) error {
	if len(f.interfaces) == 0 {
		if _, err := f.interfaceOf(netip.AddrPort{}); err != nil {
			return err
		}
	}
	f.block = appendInterfaceStats(f.block[:0], 0, f.last, recorded+dropped, dropped)
	if err := f.writeBlock(); err != nil {
		return err
	}
	return f.flush()
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
