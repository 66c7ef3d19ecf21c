package wire

import "hash/crc32"

// crcStandard returns the register after p by hash/crc32. It is the register
// itself, not its complement, which is what hash/crc32 hands out.
//
// The Sealer calls crcUpdate, which does the same. On amd64 that is assembly,
// where the processor can run it; the build tag purego leaves the assembly out.
func crcStandard(reg uint32, p []byte) uint32 {
	return ^crc32.Update(^reg, crc32.IEEETable, p)
}
