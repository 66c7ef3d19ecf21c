package bsdh

import "encoding/binary"

// SrcAvail is the extended header of MIDSrcAvail: it advertises data that the
// receiver fetches with RDMA READ. The payload of the message is the beginning of
// the data; the rest follows at Addr plus the length of the payload.
//
//	0  length     4  R_Key     8  virtual address, 64 bits
type SrcAvail struct {
	Len  uint32 // of the data in bytes, payload included
	RKey uint32
	Addr uint64
}

// Append appends the extended header to b.
func (s SrcAvail) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, s.Len)
	b = binary.BigEndian.AppendUint32(b, s.RKey)
	return binary.BigEndian.AppendUint64(b, s.Addr)
}

func parseSrcAvail(b []byte) (s SrcAvail, err error) {
	if err := checkLength(b, "SrcAvail", srcAvailBytes); err != nil {
		return s, err
	}
	return SrcAvail{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:])}, nil
}

// SinkAvail is the extended header of MIDSinkAvail: it advertises memory that the
// receiver of the message fills with RDMA WRITE.
//
//	0  length     4  R_Key     8  virtual address, 64 bits     16  NonDiscards
type SinkAvail struct {
	Len  uint32 // of the memory in bytes
	RKey uint32
	Addr uint64

	// NonDiscards is the number of messages with stream data that the sender
	// has received and kept, modulo 2^32. If the receiver has sent more, the
	// advertisement crossed them and is void.
	NonDiscards uint32
}

// Append appends the extended header to b.
func (s SinkAvail) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, s.Len)
	b = binary.BigEndian.AppendUint32(b, s.RKey)
	b = binary.BigEndian.AppendUint64(b, s.Addr)
	return binary.BigEndian.AppendUint32(b, s.NonDiscards)
}

func parseSinkAvail(b []byte) (s SinkAvail, err error) {
	if err := checkLength(b, "SinkAvail", sinkAvailBytes); err != nil {
		return s, err
	}
	return SinkAvail{
		binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint32(b[16:]),
	}, nil
}
