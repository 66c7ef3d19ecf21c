//go:build !amd64 || purego

package wire

// crcUpdate returns the register after p.
func crcUpdate(reg uint32, p []byte) uint32 { return crcStandard(reg, p) }
