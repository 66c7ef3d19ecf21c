package rnic

import (
	"net/netip"
	"os"
	"runtime"
)

// ownHost is a loopback address that no other process tests on at the same
// time, in the given 127.net.0.0/16, so that its ports are free: runs of these
// tests may go side by side. Where there is one loopback address it is that.
func ownHost(net byte) netip.Addr {
	if runtime.GOOS != "linux" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, net, byte(pid >> 8), byte(pid)})
}
