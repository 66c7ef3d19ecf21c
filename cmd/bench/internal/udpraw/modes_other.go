//go:build !linux

package udpraw

// Without system calls of one's own there is only what Go's net package does.
var modes = []Mode{Netpoll}
