//go:build unix && !race

package pages

import "golang.org/x/sys/unix"

// mapPages maps pages. It returns nil if that fails, for example at the
// system's limit of mappings per process.
func mapPages(n int) (mem []byte, free func()) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil
	}
	disableHugePages(mem)
	return mem, func() { _ = unix.Munmap(mem) } // mem is a mapping
}
