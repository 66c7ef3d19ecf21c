//go:build !unix

package tcp

import "net"

// try leaves everything to the goroutine that writes.
func try(*net.TCPConn, []byte, []byte) int { return 0 }
