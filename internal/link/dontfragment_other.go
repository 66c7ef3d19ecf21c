//go:build !linux && !darwin && !freebsd && !windows

package link

import "net"

// dontFragment does nothing: the system has no such option for UDP sockets.
func dontFragment(*net.UDPConn, bool) {}
