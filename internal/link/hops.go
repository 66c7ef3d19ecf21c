package link

// HopLimit is the IPv4 TTL or IPv6 hop limit of packets whose path has none, to
// multicast groups apart: there it is the system's, 1.
const HopLimit = 64
