package bsdh

import (
	"encoding/binary"
	"strconv"
)

// A Design is a flow control mode of a socket between two softrnics, after the
// designs of Balaji et al. for SDP over InfiniBand.
type Design uint8

// Designs.
const (
	DesignNone  Design = iota // credit-based flow control of SDP: no Extension
	DesignRDMA                // the source writes into free space of the sink's ring by RDMA
	DesignNIC                 // the same, and the source's adapter stalls without a receive of the sink
	DesignBrief               // credit-based flow control, with headers in immediate data: see Brief
)

// String returns the name of the design: "none", "rdma", "nic" or "brief".
func (d Design) String() string {
	switch d {
	case DesignNone:
		return "none"
	case DesignRDMA:
		return "rdma"
	case DesignNIC:
		return "nic"
	case DesignBrief:
		return "brief"
	}
	return "design " + strconv.Itoa(int(d))
}

// Extension is softrnic's extension of Hello and HelloAck, in 24 reserved bytes: at
// offset 52 of the hello header, at offset 8 of the hello acknowledgement header.
// Other implementations send them as 0 and ignore them.
//
//	0  design     1  version     2  buffers     4  ring size
//	8  window    12  R_Key      16  virtual address, 64 bits
//
// The zero value is an absent extension, encoded as zeros.
type Extension struct {
	Design  Design
	Buffers uint16 // number of the sender's send buffers, each as long as the data in one of its receive buffers
	Ring    uint32 // length of the sender's receive ring in bytes; DesignBrief has none
	Window  uint32 // virtual window: bytes of the ring that one posted receive stands for
	RKey    uint32 // of the ring
	Addr    uint64 // of the ring
}

const (
	extensionBytes   = 24
	extensionVersion = 2
)

// Present reports whether there is an extension.
func (e Extension) Present() bool { return e.Design != DesignNone }

func (e Extension) appendTo(b []byte) []byte {
	if !e.Present() {
		return append(b, make([]byte, extensionBytes)...)
	}
	b = append(b, byte(e.Design), extensionVersion)
	b = binary.BigEndian.AppendUint16(b, e.Buffers)
	b = binary.BigEndian.AppendUint32(b, e.Ring)
	b = binary.BigEndian.AppendUint32(b, e.Window)
	b = binary.BigEndian.AppendUint32(b, e.RKey)
	return binary.BigEndian.AppendUint64(b, e.Addr)
}

// parseExtension decodes an extension from b, at least extensionBytes long. An
// unknown version or design counts as absent.
func parseExtension(b []byte) Extension {
	design := Design(b[0])
	if design == DesignNone || design > DesignBrief || b[1] != extensionVersion {
		return Extension{}
	}
	return Extension{
		Design: design, Buffers: binary.BigEndian.Uint16(b[2:]), Ring: binary.BigEndian.Uint32(b[4:]), Window: binary.BigEndian.Uint32(b[8:]),
		RKey: binary.BigEndian.Uint32(b[12:]), Addr: binary.BigEndian.Uint64(b[16:]),
	}
}
