package bsdh

// servicePrefix is what service ids of SDP have above the port.
const servicePrefix = 0x0000000000010000

// ServiceID is the service id by which connection management finds the socket
// that listens on a port.
func ServiceID(port uint16) uint64 { return servicePrefix | uint64(port) }

// Port is the port of a service id, false if that is not one of SDP's.
func Port(serviceID uint64) (port uint16, ok bool) {
	return uint16(serviceID), serviceID&^0xFFFF == servicePrefix
}
