//go:build !unix && !windows

package link

// bufferSizes tells nothing: the system has no such option.
func bufferSizes(uintptr) (recv, send int) { return 0, 0 }
