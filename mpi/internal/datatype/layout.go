package datatype

import (
	"errors"
	"fmt"
	"sort"
	"unsafe"
)

// ErrLayout is wrapped by the error of an invalid description of memory (MPI_ERR_BUFFER).
var ErrLayout = errors.New("mpi: invalid buffer")

// A layout describes the memory of a message: the runs of bytes of an item, and the
// distance from one item to the next.
//
//	        item             item
//	|<---- extent ---->|
//	[run]   [run]       [run]   [run]        memory
//	[run][run][run][run]                     packed
//	|<-size->|
//
// An item of a strided buffer has one run; an indexed buffer is one item; each struct
// is an item. A layout is not modified once it is in a Buffer.
type layout struct {
	runs       []run
	size       int    // packed size of an item in bytes
	extent     int    // bytes from one item to the next in memory
	name       string // of structs
	kinds      []kindRun
	err        error // the layout is invalid
	overlapErr error // the layout overlaps and cannot receive
}

// A run is a contiguous range of bytes.
type run struct {
	off  int // offset in the item
	size int
	pos  int // offset in the packed item
}

// add appends bytes, merged into the last run if possible.
func (l *layout) add(off, size int) {
	if size == 0 {
		return
	}
	if n := len(l.runs); n > 0 && l.runs[n-1].off+l.runs[n-1].size == off {
		l.runs[n-1].size += size
	} else {
		l.runs = append(l.runs, run{off, size, l.size})
	}
	l.size += size
}

// isDense reports whether the items are packed in memory.
func (l *layout) isDense() bool {
	return l.err == nil && (l.size == 0 || len(l.runs) == 1 && l.runs[0].off == 0 && l.size == l.extent)
}

// findRun returns the index of the run of a position in the packed item.
func (l *layout) findRun(pos int) int {
	return sort.Search(len(l.runs), func(i int) bool { return l.runs[i].pos > pos }) - 1
}

// copyPacked copies between a packed message and memory.
func (b Buffer) copyPacked(wire []byte, in bool) (done int) {
	n := min(len(wire), b.Size())
	if n == 0 {
		return 0
	}
	if mem, ok := b.Contiguous(); ok {
		if in {
			return copy(mem, wire[:n])
		}
		return copy(wire[:n], mem)
	}
	l, from := b.layout, b.from
	if len(l.runs) == 1 && from%l.size == 0 {
		if done = copyColumn(b.mem[from/l.size*l.extent+l.runs[0].off:], wire[:n], l.size, l.extent, in); done == n {
			return n
		}
		from += done
	}
	item := b.mem[from/l.size*l.extent:]
	r := l.findRun(from % l.size)
	skip := from%l.size - l.runs[r].pos
	for {
		piece := item[l.runs[r].off+skip:][:min(l.runs[r].size-skip, n-done)]
		if in {
			copy(piece, wire[done:])
		} else {
			copy(wire[done:], piece)
		}
		if done += len(piece); done == n {
			return n
		}
		skip = 0
		if r++; r == len(l.runs) {
			r, item = 0, item[l.extent:]
		}
	}
}

// badBuffer returns a buffer with an error.
func badBuffer(format string, args ...any) Buffer {
	return Buffer{layout: &layout{err: layoutError(format, args...)}}
}

func layoutError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrLayout}, args...)...)
}

// copyColumn copies items of 4, 8 or 16 bytes, for example of a matrix column, while
// wire has complete ones. It copies nothing for other sizes.
func copyColumn(mem, wire []byte, size, extent int, in bool) int {
	switch size {
	case 4:
		return copyWords[[4]byte](mem, wire, extent, in)
	case 8:
		return copyWords[[8]byte](mem, wire, extent, in)
	case 16:
		return copyWords[[16]byte](mem, wire, extent, in)
	}
	return 0
}

func copyWords[W [4]byte | [8]byte | [16]byte](mem, wire []byte, extent int, in bool) (done int) {
	size := int(unsafe.Sizeof(*new(W)))
	for at := 0; len(wire)-done >= size; at += extent {
		m, w := (*W)(unsafe.Pointer(&mem[at : at+size][0])), (*W)(unsafe.Pointer(&wire[done]))
		if in {
			*m = *w
		} else {
			*w = *m
		}
		done += size
	}
	return done
}
