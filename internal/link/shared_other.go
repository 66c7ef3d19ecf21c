//go:build !linux

package link

import (
	"fmt"
	"net/netip"
	"runtime"
)

// BindShared binds n sockets to one address. Only Linux can select among them.
func BindShared(addr netip.AddrPort, _ int) ([]int, error) {
	return nil, fmt.Errorf("link: %v: sharing an address needs Linux, this is %s", addr, runtime.GOOS)
}

// Adopt opens a link on a socket of BindShared.
func Adopt(o Options, _ int) (Conn, error) {
	return nil, fmt.Errorf("link: %v: sharing an address needs Linux, this is %s", o.Addr, runtime.GOOS)
}
