package bsdh

import "encoding/binary"

// RdmaCompl is the extended header of MIDRdmaWrCompl and MIDRdmaRdCompl: the length
// written to the oldest SinkAvail, or read from the SrcAvail, by RDMA.
type RdmaCompl struct {
	Len uint32 // bytes
}

// Append appends the extended header to b.
func (c RdmaCompl) Append(b []byte) []byte { return binary.BigEndian.AppendUint32(b, c.Len) }

func parseRdmaCompl(b []byte) (c RdmaCompl, err error) {
	if err := checkLength(b, "RdmaWrCompl and RdmaRdCompl", complBytes); err != nil {
		return c, err
	}
	return RdmaCompl{binary.BigEndian.Uint32(b)}, nil
}

// ChRcvBuf is the extended header of MIDChRcvBuf, with the requested size of the
// receiver's buffers, and of MIDChRcvBufAck, with the new size of the sender's
// buffers.
type ChRcvBuf struct {
	Size uint32 // of one receive buffer in bytes, headers included
}

// Append appends the extended header to b.
func (c ChRcvBuf) Append(b []byte) []byte { return binary.BigEndian.AppendUint32(b, c.Size) }

func parseChRcvBuf(b []byte) (c ChRcvBuf, err error) {
	if err := checkLength(b, "ChRcvBuf and ChRcvBufAck", rcvBufBytes); err != nil {
		return c, err
	}
	return ChRcvBuf{binary.BigEndian.Uint32(b)}, nil
}

// SuspComm is the extended header of MIDSuspComm: the connection will move.
type SuspComm struct {
	ServiceID uint64 // service of the new connection
}

// Append appends the extended header to b.
func (s SuspComm) Append(b []byte) []byte { return binary.BigEndian.AppendUint64(b, s.ServiceID) }

func parseSuspComm(b []byte) (s SuspComm, err error) {
	if err := checkLength(b, "SuspComm", suspBytes); err != nil {
		return s, err
	}
	return SuspComm{binary.BigEndian.Uint64(b)}, nil
}
