package capture

import (
	"encoding/binary"
	"math"
	"runtime"
)

// Block types, options and constants of the pcapng format
// (draft-ietf-opsawg-pcapng, sections 3 and 4).
const (
	blockSection         = 0x0A0D0D0A
	blockInterface       = 1
	blockInterfaceStats  = 5
	blockEnhancedPacket  = 6
	byteOrderMagic       = 0x1A2B3C4D
	versionMajor         = 1
	versionMinor         = 0
	linkTypeRaw          = 101 // packets begin with an IP header
	nanosecondResolution = 9   // if_tsresol: timestamps in units of 10^-9 s

	optionEnd         = 0
	optionComment     = 1
	optionHardware    = 2 // of sections
	optionOS          = 3
	optionApplication = 4
	optionName        = 2 // of interfaces
	optionDescription = 3
	optionResolution  = 9
	optionFlags       = 2 // of packets
	optionReceived    = 4 // of interface statistics
	optionDropped     = 5

	flagInbound, flagOutbound = 1, 2
)

// A block is a pcapng block in the making, little-endian.
type block []byte

// startBlock appends the header of a block to b, which must be empty.
func startBlock(b block, kind uint32) block {
	return b.uint32(kind).uint32(0) // the length is set by end
}

func (b block) uint16(v uint16) block { return binary.LittleEndian.AppendUint16(b, v) }
func (b block) uint32(v uint32) block { return binary.LittleEndian.AppendUint32(b, v) }
func (b block) uint64(v uint64) block { return binary.LittleEndian.AppendUint64(b, v) }

// timestamp appends a time in nanoseconds, the upper half first.
func (b block) timestamp(ns int64) block { return b.uint32(uint32(ns >> 32)).uint32(uint32(ns)) }

// pad appends zeros up to a multiple of 4 bytes.
func (b block) pad() block {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// option appends an option with a text, cut to the 65535 bytes that its length
// can express.
func (b block) option(code uint16, text string) block {
	text = text[:min(len(text), math.MaxUint16)]
	return append(b.uint16(code).uint16(uint16(len(text))), text...).pad()
}

// end ends the options and the block.
func (b block) end() block {
	b = b.uint16(optionEnd).uint16(0)
	b = b.uint32(uint32(len(b) + 4))
	copy(b[4:8], b[len(b)-4:])
	return b
}

// appendSection appends the Section Header Block, the first of a file.
func appendSection(b block, application string) block {
	return startBlock(b, blockSection).uint32(byteOrderMagic).uint16(versionMajor).uint16(versionMinor).
		uint64(math.MaxUint64). // length of the section: unknown
		option(optionHardware, runtime.GOARCH).option(optionOS, runtime.GOOS).option(optionApplication, application).end()
}

// appendInterface appends an Interface Description Block. Interfaces are numbered
// from 0 in the order of their blocks.
func appendInterface(b block, name, description string) block {
	return startBlock(b, blockInterface).uint16(linkTypeRaw).uint16(0).
		uint32(0). // no limit of the captured length
		option(optionName, name).option(optionDescription, description).
		option(optionResolution, string([]byte{nanosecondResolution})).end()
}

// appendPacket appends an Enhanced Packet Block with a whole frame, captured at
// the given time in nanoseconds since 1970.
func appendPacket(b block, iface int, ns int64, frame []byte, flags uint32, comment string) block {
	b = startBlock(b, blockEnhancedPacket).uint32(uint32(iface)).timestamp(ns).
		uint32(uint32(len(frame))).uint32(uint32(len(frame)))
	b = append(b, frame...).pad()
	b = b.uint16(optionFlags).uint16(4).uint32(flags)
	if comment != "" {
		b = b.option(optionComment, comment)
	}
	return b.end()
}

// appendInterfaceStats appends an Interface Statistics Block.
func appendInterfaceStats(b block, iface int, ns int64, received, dropped uint64) block {
	return startBlock(b, blockInterfaceStats).uint32(uint32(iface)).timestamp(ns).
		uint16(optionReceived).uint16(8).uint64(received).
		uint16(optionDropped).uint16(8).uint64(dropped).end()
}
