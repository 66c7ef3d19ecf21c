//go:build !race

package pages

import "golang.org/x/sys/unix"

// disableHugePages keeps the first touch of a page from being that of two megabytes, where the system
// gives huge pages to who does not ask. A kernel without them has nothing to say no to.
func disableHugePages(mem []byte) { _ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE) }
