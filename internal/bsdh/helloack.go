package bsdh

import "encoding/binary"

// HelloAckBytes is the length of a HelloAck: all private data of a REP.
const HelloAckBytes = 196

// HelloAck accepts the connection requested by a Hello. It is the private data of a
// REP. These are the offsets of the hello acknowledgement
// header (HAH), which follows the base header:
//
//	0  version: major 4, minor 4       8  reserved; Extension between softrnics
//	1  reserved                       32  reserved
//	3  MaxAdverts                    180  end
//	4  ActRcvSz
type HelloAck struct {
	Version    uint8  // Version
	MaxAdverts uint8  // maximum outstanding RDMA advertisements to the sender, at least 1
	ActRcvSz   uint32 // size of each of the sender's receive buffers, headers included
	Bufs       uint16 // receives that the sender has posted, from the base header

	Extension Extension // reply to that of the Hello; absent if that was absent
}

// Append appends the message, HelloAckBytes with its base header, to b.
func (h *HelloAck) Append(b []byte) []byte {
	b = Header{MID: MIDHelloAck, Bufs: h.Bufs, Len: HelloAckBytes}.Append(b)
	b = append(b, h.Version, 0, 0, h.MaxAdverts)
	b = binary.BigEndian.AppendUint32(b, h.ActRcvSz)
	b = h.Extension.appendTo(b)
	var rest [helloAckBytes - 8 - extensionBytes]byte
	return append(b, rest[:]...)
}

// helloAckFields is the length of HelloAck in early OFED, which ends after its last
// field.
const helloAckFields = HeaderBytes + 8

// ParseHelloAck decodes a HelloAck from the private data of a REP. It returns an
// error if the data is not a HelloAck or permits no advertisement. The caller checks
// Version.
func ParseHelloAck(private []byte) (h HelloAck, err error) {
	if err := checkHello(private, MIDHelloAck, helloAckFields, HelloAckBytes); err != nil {
		return h, err
	}
	base := parseHeader((*[HeaderBytes]byte)(private))
	b := private[HeaderBytes:]
	h = HelloAck{Version: b[0], MaxAdverts: b[3], ActRcvSz: binary.BigEndian.Uint32(b[4:]), Bufs: base.Bufs}
	if h.MaxAdverts == 0 {
		return HelloAck{}, malformedError("HelloAck with MaxAdverts 0: want at least 1")
	}
	if base.Len == HelloAckBytes {
		h.Extension = parseExtension(b[8:])
	}
	return h, nil
}
