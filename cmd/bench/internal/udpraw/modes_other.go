//go:build !linux

package udpraw

// Only the mode of package net works without raw system calls.
var modes = []Mode{Netpoll}
