package cm

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// The kernel has no port space of SDP, and of the private data of a request in TCP's, RDMA-CM's header
// leaves 56 of 92 bytes. A Hello of SDP fits without the addresses, which are in that header, and
// without four reserved bytes. The peer is a device of the kernel in a program of this module.

// Parts of a Hello that are not sent (see bsdh.Hello).
const (
	helloHead  = 16 + 14 // bytes up to the reserved ones before the addresses
	helloAddrs = 16 + 16
	helloTail  = helloAddrs + 32 + 2 // offset of the bytes after the addresses and two reserved ones
)

// packHello returns the private data of the kernel's request for a Hello.
func packHello(hello []byte) ([]byte, error) {
	if len(hello) != mad.REQPrivateLen {
		return nil, fmt.Errorf("%w: private data of %d bytes, want a Hello of %d", verbs.ErrInvalid, len(hello), mad.REQPrivateLen)
	}
	return append(append([]byte(nil), hello[:helloHead]...), hello[helloTail:]...), nil
}

// unpackHello undoes packHello.
func unpackHello(private []byte, from, to netip.AddrPort) ([]byte, error) {
	const packed = helloHead + mad.REQPrivateLen - helloTail
	if len(private) < packed {
		return nil, fmt.Errorf("%w: private data of %d bytes, want %d", verbs.ErrInvalid, len(private), packed)
	}
	hello := make([]byte, mad.REQPrivateLen)
	copy(hello, private[:helloHead])
	put := func(field []byte, a netip.Addr) {
		ip := a.Unmap().AsSlice()
		copy(field[16-len(ip):], ip)
	}
	put(hello[helloAddrs:helloAddrs+16], from.Addr())
	put(hello[helloAddrs+16:helloAddrs+32], to.Addr())
	copy(hello[helloTail:], private[helloHead:packed])
	return hello, nil
}
