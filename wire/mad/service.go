package mad

import "fmt"

// PortSpace is one of RDMA-CM's spaces of port numbers (enum rdma_ucm_port_space).
type PortSpace uint16

// Port spaces.
const (
	PortSpaceSDP   PortSpace = 0x0001 // sockets; in OFED and FreeBSD, no longer in Linux
	PortSpaceIPoIB PortSpace = 0x0002
	PortSpaceTCP   PortSpace = 0x0106 // connections
	PortSpaceUDP   PortSpace = 0x0111 // datagrams
	PortSpaceIB    PortSpace = 0x013F
)

// String returns the name of the space, for example "TCP".
func (s PortSpace) String() string {
	switch s {
	case PortSpaceSDP:
		return "SDP"
	case PortSpaceIPoIB:
		return "IPoIB"
	case PortSpaceTCP:
		return "TCP"
	case PortSpaceUDP:
		return "UDP"
	case PortSpaceIB:
		return "IB"
	}
	return fmt.Sprintf("port space 0x%04x", uint16(s))
}

// HasHeader reports whether private data of requests to this space begins with the
// RDMA-CM header. In PortSpaceIB it does if the programs use IP addresses, and not
// with InfiniBand addresses. In PortSpaceSDP it is a Hello, which has the fields of
// that header.
func (s PortSpace) HasHeader() bool {
	return s == PortSpaceTCP || s == PortSpaceUDP || s == PortSpaceIPoIB || s == PortSpaceIB
}

// ServiceID identifies the service that a REQ or SIDR_REQ requests. In RDMA-CM it consists
// of a port space and a port:
//
//	63           32 31           16 15            0
//	+--------------+---------------+---------------+
//	|      0       |  port space   |     port      |
//	+--------------+---------------+---------------+
type ServiceID uint64

// ServiceIDOf returns the service id of a port.
func ServiceIDOf(s PortSpace, port uint16) ServiceID {
	return ServiceID(s)<<16 | ServiceID(port)
}

// Split returns port space and port. ok is false if the service id is not one
// of RDMA-CM's.
func (id ServiceID) Split() (s PortSpace, port uint16, ok bool) {
	s, port = PortSpace(id>>16), uint16(id)
	switch s {
	case PortSpaceSDP, PortSpaceTCP, PortSpaceUDP, PortSpaceIPoIB, PortSpaceIB:
		return s, port, id>>32 == 0
	}
	return 0, 0, false
}

// String returns port space and port, for example "TCP port 7174".
func (id ServiceID) String() string {
	if s, port, ok := id.Split(); ok {
		return fmt.Sprintf("%v port %d", s, port)
	}
	return fmt.Sprintf("service 0x%016x", uint64(id))
}
