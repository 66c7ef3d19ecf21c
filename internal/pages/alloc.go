package pages

// minMmap is the size below which pages of their own are not worth a system call.
const minMmap = 64 << 10

// Alloc returns n bytes, all 0, and what gives them back. Pages that nobody touches take no
// memory. Where there are no pages to be had, or few bytes are wanted, the bytes are the
// heap's. The caller owns them until it calls free, once; free is never nil.
func Alloc(n int) (mem []byte, free func()) {
	if n >= minMmap {
		if mem, free = mapPages(n); mem != nil {
			return mem, free
		}
	}
	return make([]byte, n), func() {}
}
