//go:build linux || darwin || freebsd || windows

package link

import "net"

// dontFragment sets don't-fragment if the system lets it: the ICRC covers the
// flag, and a RoCE packet must not be fragmented.
func dontFragment(conn *net.UDPConn, v6 bool) {
	o := dontFragmentOption(v6)
	if raw, err := conn.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { o.apply(fd) })
	}
}
