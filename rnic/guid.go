package rnic

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// nodeGUID returns the EUI-64 of a device at an address, in a slot of it. It is the same at each
// start, since programs store it. The bit of locally administered identifiers is set and that of
// groups is not. That of an IPv4 address has the slot in the second byte, the UDP port in the next
// two and the address in the last four; that of an IPv6 address is a hash of these.
func nodeGUID(at netip.AddrPort, slot int) uint64 {
	const local, local6 = 0x02, 0x06 // first byte
	ip := at.Addr().Unmap().WithZone("")
	guid := make([]byte, 8)
	guid[0], guid[1] = local, byte(slot)
	binary.BigEndian.PutUint16(guid[2:], at.Port())
	if ip.Is4() {
		copy(guid[4:], ip.AsSlice())
	} else {
		sum := sha256.Sum256(append(guid, ip.AsSlice()...))
		guid[0] = local6
		copy(guid[1:], sum[:])
	}
	return binary.BigEndian.Uint64(guid)
}
