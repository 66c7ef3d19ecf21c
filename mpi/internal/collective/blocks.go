package collective

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// checkBounds checks that all blocks are inside the buffer.
func (l blockLayout) checkBounds(b datatype.Buffer, size int, name string) error {
	if len(l.counts) != size || l.displs != nil && len(l.displs) != size {
		return fmt.Errorf("%w: %d counts and %d displacements to %s: want one for each of %d ranks", datatype.ErrCount, len(l.counts), len(l.displs), name, size)
	}
	at := 0
	for i, n := range l.counts {
		if l.displs != nil {
			at = l.displs[i]
		}
		if n < 0 || at < 0 || n > b.Count() || at > b.Count()-n {
			return fmt.Errorf("%w: block of %d elements at %d to %s of rank %d is outside the buffer of %d elements", datatype.ErrCount, n, at, name, i, b.Count())
		}
		at += n
	}
	return nil
}

// checkOverlap checks that no blocks overlap.
func (l blockLayout) checkOverlap() error {
	order := make([]int, 0, len(l.displs)) // without displs blocks are adjacent
	for r := range l.displs {
		if l.counts[r] > 0 {
			order = append(order, r)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(l.displs[a], l.displs[b]) })
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; l.displs[a]+l.counts[a] > l.displs[b] {
			return fmt.Errorf("%w: receive blocks of ranks %d (%d elements at %d) and %d (%d at %d) overlap", datatype.ErrCount,
				a, l.counts[a], l.displs[a], b, l.counts[b], l.displs[b])
		}
	}
	return nil
}

// byteParts returns the blocks in bytes of a packed buffer, in list.
func (l blockLayout) byteParts(list []coll.Part, b datatype.Buffer) []coll.Part {
	size, at := b.ElementSize(), 0
	list = list[:0]
	for i, n := range l.counts {
		if l.displs != nil {
			at = l.displs[i]
		}
		list = append(list, coll.Part{At: at * size, Len: n * size})
		at += n
	}
	return list
}

// countsHash returns a hash of the counts of all ranks that is not 0.
func (l blockLayout) countsHash(b datatype.Buffer) uint64 {
	unit := 1
	if b.Count() > 0 {
		unit = int(b.Slice(0, 1).Signature().Count)
	}
	h := fnv.New64a()
	for _, n := range l.counts {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], uint64(n*unit))
		h.Write(word[:])
	}
	return h.Sum64() | 1
}

// commonBuffer returns a buffer that has the same size at all ranks, and the number of blocks
// that it consists of, 0 if there is no such buffer.
func (o *Op) commonBuffer(size int) (b datatype.Buffer, pieces int) {
	switch {
	case o.grid != nil:
		return o.recv, 2 * len(o.grid.Dims)
	case o.collective == coll.Bcast:
		return o.recv, 1
	case o.collective == coll.Allgatherv:
		return o.recv, 1
	case o.collective == coll.Gather && o.inPlace, o.collective == coll.Allgather && o.inPlace, o.collective == coll.Alltoall:
		return o.recv, size
	case o.collective == coll.Scatter && o.inPlace:
		return o.send, size
	case o.collective == coll.Scatter:
		return o.recv, 1
	case o.collective == coll.Gather, o.collective == coll.Allgather:
		return o.send, 1
	case shapes[o.collective].op:
		return o.reduceBuffer(), 1
	}
	return datatype.Buffer{}, 0
}

// reduceBuffer returns the buffer that a reduction combines.
func (o *Op) reduceBuffer() datatype.Buffer {
	if o.inPlace {
		return o.recv
	}
	return o.send
}

// bufferTo returns the block that a rank sends to another.
func (o *Op) bufferTo(rank, to int) (b datatype.Buffer) {
	switch o.collective {
	case coll.Gatherv:
		if to != o.root {
			return b
		}
		if o.inPlace {
			return o.recv.Slice(0, o.recvLayout.counts[rank])
		}
		return o.send
	case coll.Scatterv:
		if rank != o.root {
			return b
		}
		return o.send.Slice(0, o.sendLayout.counts[to])
	case coll.Alltoallv:
		if o.inPlace {
			return o.bufferFrom(rank, to)
		}
		return o.send.Slice(0, o.sendLayout.counts[to])
	}
	if o.inPlace {
		return o.bufferFrom(rank, to)
	}
	return o.sends[to]
}

// bufferFrom returns the block that a rank receives from another.
func (o *Op) bufferFrom(rank, from int) (b datatype.Buffer) {
	switch o.collective {
	case coll.Gatherv:
		if rank != o.root {
			return b
		}
		return o.recv.Slice(0, o.recvLayout.counts[from])
	case coll.Scatterv:
		if from != o.root {
			return b
		}
		if o.inPlace {
			return o.send.Slice(0, o.sendLayout.counts[rank])
		}
		return o.recv
	case coll.Alltoallv:
		return o.recv.Slice(0, o.recvLayout.counts[from])
	}
	return o.recvs[from]
}
