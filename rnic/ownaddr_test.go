package rnic

import (
	"net/netip"
	"os"
	"runtime"
)

// ownHost is a loopback address in the given 127.net.0.0/16 by the number of this
// process, whose ports are free: runs of these tests may go side by side, unless
// they are a multiple of 65,536 processes apart. Where there is one loopback
// address it is that.
func ownHost(net byte) netip.Addr {
	if runtime.GOOS != "linux" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, net, byte(pid >> 8), byte(pid)})
}
