package wire_test

import (
	"hash/crc32"
	"os"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// TestCRCReadsItsInputOnly places the input between inaccessible pages.
func TestCRCReadsItsInputOnly(t *testing.T) {
	page := os.Getpagesize()
	mapped, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(mapped)) }()
	before, open, behind := mapped[:page], mapped[page:2*page], mapped[2*page:]
	copy(open, randomBytes(page))
	require.NoError(t, syscall.Mprotect(before, syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(behind, syscall.PROT_NONE))

	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	require.Panics(t, func() { crc32.ChecksumIEEE(behind[:16]) }, "the page behind can be read")
	require.Panics(t, func() { crc32.ChecksumIEEE(before[page-16:]) }, "the page in front can be read")
	for n := range 1101 {
		for _, p := range [][]byte{open[:n], open[page-n:]} {
			want := ^crc32.Update(^uint32(5), crc32.IEEETable, p)
			for _, way := range wire.CRCWays {
				require.NotPanics(t, func() { require.Equal(t, want, way.Update(5, p)) }, "%s, length %d", way.Name, n)
			}
		}
	}
}
