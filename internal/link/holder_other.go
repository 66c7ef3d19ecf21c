//go:build !linux

package link

// rxeHoldsPort reports whether the kernel's rdma_rxe, which only Linux has,
// holds UDP port 4791.
func rxeHoldsPort() bool { return false }
