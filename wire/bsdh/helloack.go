package bsdh

import "encoding/binary"

// HelloAckBytes is the length of a HelloAck: all private data of a REP.
const HelloAckBytes = 196

// HelloAck accepts the connection that a Hello asked for. It travels as the
// private data of a REP. These are the offsets of the hello acknowledgement
// header (HAH), which follows the base header:
//
//	0  version: major 4, minor 4       8  reserved; Extension between softrnics
//	1  reserved                       32  reserved
//	3  MaxAdverts                    180  end
//	4  ActRcvSz
type HelloAck struct {
	Version    uint8  // Version
	MaxAdverts uint8  // advertisements for RDMA that the sender takes at a time, at least 1
	ActRcvSz   uint32 // size of each of the sender's receive buffers, headers included
	Bufs       uint16 // receives that the sender has posted, from the base header

	Extension Extension // that of the Hello, heeded; absent if that was
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

// helloAckFields is where the last field of early OFED's HelloAck ends.
const helloAckFields = HeaderBytes + 8

// ParseHelloAck reads a HelloAck from the private data of a REP. It is an error
// if that is no HelloAck, or lets us advertise nothing. Version is for the
// caller to judge.
func ParseHelloAck(private []byte) (h HelloAck, err error) {
	if err := checkHello(private, MIDHelloAck, helloAckFields, HelloAckBytes); err != nil {
		return h, err
	}
	base := parseHeader((*[HeaderBytes]byte)(private))
	b := private[HeaderBytes:]
	h = HelloAck{Version: b[0], MaxAdverts: b[3], ActRcvSz: binary.BigEndian.Uint32(b[4:]), Bufs: base.Bufs}
	if h.MaxAdverts == 0 {
		return HelloAck{}, malformedError("HelloAck with MaxAdverts 0, at least 1 must be taken")
	}
	if base.Len == HelloAckBytes {
		h.Extension = parseExtension(b[8:])
	}
	return h, nil
}
