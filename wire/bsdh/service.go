package bsdh

// servicePrefix has the bits of SDP service IDs above the port.
const servicePrefix = 0x0000000000010000

// ServiceID returns the connection management service ID of the socket that listens
// on a port.
func ServiceID(port uint16) uint64 { return servicePrefix | uint64(port) }

// Port returns the port of an SDP service ID. It reports false for other service
// IDs.
func Port(serviceID uint64) (port uint16, ok bool) {
	return uint16(serviceID), serviceID&^0xFFFF == servicePrefix
}
