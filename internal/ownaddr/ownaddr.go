// Package ownaddr returns loopback addresses for tests that free a port and open it
// again: no other process gets the port meanwhile, because it gets 127.0.0.1 first.
package ownaddr

import (
	"net/netip"
	"os"
	"runtime"
)

// Host returns a loopback address in the given 127.net.0.0/16 by the number of this
// process, whose ports are free: runs of tests may go side by side, unless they are a
// multiple of 65,536 processes apart. Where there is one loopback address it is that.
func Host(net byte) netip.Addr {
	if runtime.GOOS != "linux" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, net, byte(pid >> 8), byte(pid)})
}

// Device returns the address and port of a device of this process at Host(net), the zero
// AddrPort, which lets the device choose, where there is one loopback address.
func Device(net byte) netip.AddrPort {
	if runtime.GOOS != "linux" {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(Host(net), 4791)
}
