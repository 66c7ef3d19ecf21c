//go:build !race

package pages

import "golang.org/x/sys/unix"

// disableHugePages makes the first access of a page allocate that page instead
// of a huge page of 2 MiB. Kernels without huge pages return an error, which is
// ignored.
func disableHugePages(mem []byte) { _ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE) }
