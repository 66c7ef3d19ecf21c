package link

import (
	"net/netip"
	"syscall"
)

// maxRefusalHead is the number of bytes of a refused packet that its Refusal keeps:
// BTH and, of a datagram, DETH.
const maxRefusalHead = 20

// A Refusal reports that the system did not send a packet, or that the network
// answered a packet by ICMP. A link reports the first kind in the Batch of the
// packet and the second in the next Datagrams.
type Refusal struct {
	Dst  netip.AddrPort // destination of the packet
	Err  syscall.Errno  // error number of the system call, or the one that stands for the ICMP message (RFC 1122, 4.1.3.3)
	ICMP bool           // a router or the host at Dst answered
	Size int            // bytes of the IP packet; 0 if unknown
	MTU  int            // EMSGSIZE: bytes that the path carries; 0 if the system does not tell

	head    [maxRefusalHead]byte
	headLen int
}

// Head returns the first bytes of the packet from its BTH on. There are fewer
// than 12 only if a router sent back less.
func (r *Refusal) Head() []byte { return r.head[:r.headLen] }

func (r *Refusal) setHead(pkt []byte) { r.headLen = copy(r.head[:], pkt) }

// AddRefusal reports that the system did not send packet i, 0 <= i < Len. Links call it
// from WriteBatch. mtu is that of the path if errno is EMSGSIZE, or 0.
func (b *Batch) AddRefusal(i int, errno syscall.Errno, mtu int) {
	p := b.packets[i]
	dst := b.groups[p.group].to.Dst
	r := Refusal{Dst: dst, Err: errno, MTU: mtu, Size: p.end - p.off + headersLen(dst.Addr())}
	r.setHead(b.buf[p.off:p.end])
	b.refusals = append(b.refusals, r)
}

// Refusals returns the packets that the last WriteBatch did not send. They are
// valid until Reset.
func (b *Batch) Refusals() []Refusal { return b.refusals }

// AddRefusals adds the refusals of another batch, into which a wrapper copied
// packets of this one.
func (b *Batch) AddRefusals(list []Refusal) { b.refusals = append(b.refusals, list...) }

// Refusals returns the ICMP errors that the last ReadBatch found. They are valid
// until the next one.
func (r *Datagrams) Refusals() []Refusal { return r.refusals }

// AddRefusals adds ICMP errors to those of the current ReadBatch.
func (r *Datagrams) AddRefusals(list []Refusal) { r.refusals = append(r.refusals, list...) }

// headersLen returns the bytes of the IP and UDP headers of a packet to dst.
func headersLen(dst netip.Addr) int {
	if dst.Unmap().Is4() {
		return 20 + 8
	}
	return 40 + 8
}

// PathMTU returns the MTU in bytes of the path from c to dst, as far as the
// system knows it: that of the route, or a smaller one learned from an ICMP
// message. It is 0 if unknown; an error means that nothing can be sent to dst.
func PathMTU(c Conn, dst netip.AddrPort) (int, error) {
	for c != nil {
		switch l := c.(type) {
		case interface {
			PathMTU(netip.AddrPort) (int, error)
		}:
			return l.PathMTU(dst)
		case interface{ Unwrap() Conn }:
			c = l.Unwrap()
		default:
			return 0, nil
		}
	}
	return 0, nil
}
