package bsdh

import (
	"encoding/binary"
	"strconv"
)

// A FlowControl is a flow control mode of a socket between two softrnics, after the
// modes of Balaji et al. for SDP over InfiniBand.
type FlowControl uint8

// The flow control modes.
const (
	FlowControlCredit      FlowControl = iota // credit-based flow control of SDP: no Extension
	FlowControlRDMA                           // the source writes into free space of the sink's ring by RDMA
	FlowControlNIC                            // the same, and the source's adapter stalls without a receive of the sink
	FlowControlShortHeader                    // credit-based flow control, with headers in immediate data: see ShortHeader
)

// String returns the name of the mode: "credit", "rdma", "nic" or "short-header".
func (f FlowControl) String() string {
	switch f {
	case FlowControlCredit:
		return "credit"
	case FlowControlRDMA:
		return "rdma"
	case FlowControlNIC:
		return "nic"
	case FlowControlShortHeader:
		return "short-header"
	}
	return "flow control " + strconv.Itoa(int(f))
}

// Extension is softrnic's extension of Hello and HelloAck, in 24 reserved bytes: at
// offset 52 of the hello header, at offset 8 of the hello acknowledgement header.
// Other implementations send them as 0 and ignore them.
//
//	0  mode       1  version     2  buffers     4  ring size
//	8  window    12  R_Key      16  virtual address, 64 bits
//
// The zero value is an absent extension, encoded as zeros.
type Extension struct {
	FlowControl FlowControl
	Buffers     uint16 // number of the sender's send buffers, each as long as the data in one of its receive buffers
	Ring        uint32 // length of the sender's receive ring in bytes; FlowControlShortHeader has none
	Window      uint32 // virtual window: bytes of the ring that one posted receive stands for
	RKey        uint32 // of the ring
	Addr        uint64 // of the ring
}

const (
	extensionBytes   = 24
	extensionVersion = 2
)

// Present reports whether there is an extension.
func (e Extension) Present() bool { return e.FlowControl != FlowControlCredit }

func (e Extension) appendTo(b []byte) []byte {
	if !e.Present() {
		return append(b, make([]byte, extensionBytes)...)
	}
	b = append(b, byte(e.FlowControl), extensionVersion)
	b = binary.BigEndian.AppendUint16(b, e.Buffers)
	b = binary.BigEndian.AppendUint32(b, e.Ring)
	b = binary.BigEndian.AppendUint32(b, e.Window)
	b = binary.BigEndian.AppendUint32(b, e.RKey)
	return binary.BigEndian.AppendUint64(b, e.Addr)
}

// parseExtension decodes an extension from b, at least extensionBytes long. An
// unknown version or mode counts as absent.
func parseExtension(b []byte) Extension {
	mode := FlowControl(b[0])
	if mode == FlowControlCredit || mode > FlowControlShortHeader || b[1] != extensionVersion {
		return Extension{}
	}
	return Extension{
		FlowControl: mode, Buffers: binary.BigEndian.Uint16(b[2:]), Ring: binary.BigEndian.Uint32(b[4:]), Window: binary.BigEndian.Uint32(b[8:]),
		RKey: binary.BigEndian.Uint32(b[12:]), Addr: binary.BigEndian.Uint64(b[16:]),
	}
}
