package wire

// PSN is a packet sequence number: 24 bits that wrap. Only its low 24 bits are
// ever set.
type PSN uint32

// PSNMask has the 24 bits of a PSN set.
const PSNMask = 1<<24 - 1

// Add returns the PSN n packets after p; n may be negative.
func (p PSN) Add(n int) PSN { return PSN(uint32(p)+uint32(n)) & PSNMask }

// Sub returns how many packets p is after q, from -2^23 to 2^23-1: negative
// when p is the older one.
func (p PSN) Sub(q PSN) int { return int(int32(uint32(p-q)<<8) >> 8) }

// Less reports whether p comes before q. Of two PSNs half the circle (2^23)
// apart each is before the other, so windows must stay smaller than that.
func (p PSN) Less(q PSN) bool { return int32(uint32(p-q)<<8) < 0 }

// LessEq reports whether p comes before q or is q.
func (p PSN) LessEq(q PSN) bool { return p == q || p.Less(q) }
