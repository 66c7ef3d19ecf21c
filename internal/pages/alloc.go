package pages

// minMmap is the size in bytes below which a mapping is not worth a system
// call.
const minMmap = 64 << 10

// Alloc returns n zero bytes and a function that frees them. Untouched pages
// take no memory. Small buffers, and those for which mapping fails, are
// allocated on the heap. The caller owns the bytes until it calls free, once;
// free is never nil.
func Alloc(n int) (mem []byte, free func()) {
	if n >= minMmap {
		if mem, free = mapPages(n); mem != nil {
			return mem, free
		}
	}
	return make([]byte, n), func() {}
}
