package data

import (
	"fmt"
	"math/bits"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// buddy is the buddy allocator of a heap, on a cache of the heap's words. Blocks are 64 bytes times a power
// of two long, and aligned to their length. Free blocks of each length are in a list whose links are stored
// in the blocks. A freed block is merged with its other half, its buddy, if that is free.
//
//	0    lock
//	8    capacity in blocks of 64 bytes
//	16   number of allocated blocks, of any length
//	24   their bytes
//	32   for each length, 1 + the number of the first free block, or 0
//	320  the state of each block of 64 bytes, one byte each
//	     the blocks, from a multiple of 64 on
//
// The states are separate from the blocks. So a program that writes beyond its block can damage only the
// links of free blocks, which is detected, and the state always tells whether an address is that of an
// allocated block.
type buddy struct {
	*wordCache
	blocks uint64
}

const (
	blockSize  = 64 // bytes
	offBlocks  = 8
	offLive    = 16
	offBytes   = 24
	offHeads   = 32
	offStates  = 320
	orders     = (offStates - offHeads) / 8
	stateLive  = 0x80 // or the order
	stateFree  = 1    // plus the order
	nodeNext   = 8    // words of a free block, behind the word that marks a destroyed structure
	nodeBefore = 16
)

// blocksOffset returns the offset of the first block.
func blocksOffset(blocks uint64) uint64 {
	return (offStates + blocks + blockSize - 1) / blockSize * blockSize
}

// blockCount returns the number of blocks that fit into a heap of length bytes.
func blockCount(length uint64) uint64 {
	n := length / (blockSize + 1)
	for n > 0 && blocksOffset(n)+n*blockSize > length {
		n--
	}
	return n
}

// orderOf returns the order of the shortest block of at least n bytes.
func orderOf(n uint64) int { return bits.Len64((max(n, 1) - 1) / blockSize) }

// formatHeap makes zeroed memory a heap without allocated blocks.
func formatHeap(s *wordCache, length uint64) error {
	b := buddy{s, blockCount(length)}
	s.setWord(offBlocks, b.blocks)
	for at := uint64(0); at < b.blocks; {
		order := bits.Len64(b.blocks-at) - 1
		if at > 0 {
			order = min(order, bits.TrailingZeros64(at))
		}
		if err := b.pushFree(at, order); err != nil {
			return err
		}
		at += 1 << order
	}
	return nil
}

// openBuddy reads the words that every operation needs.
func openBuddy(s *wordCache) (b buddy, err error) {
	if err = s.fetchWords(offBlocks, (offStates-offBlocks)/8); err != nil {
		return b, err
	}
	n, err := s.getWord(offBlocks)
	if n == 0 || n > protocol.MaxLength/blockSize {
		return b, fmt.Errorf("%w: heap of %d blocks", ErrDamaged, n)
	}
	return buddy{s, n}, err
}

// alloc allocates a block of at least n bytes, and returns its offset.
func (b buddy) alloc(n uint64) (off uint64, err error) {
	order := orderOf(n)
	var head uint64
	from := order
	for ; from < orders; from++ {
		if head, err = b.getWord(offHeads + 8*uint64(from)); err != nil {
			return 0, err
		}
		if head != 0 {
			break
		}
	}
	if from >= orders {
		used, err := b.getWord(offBytes)
		if err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("%w: %d bytes requested, %d of %d in use", ErrNoMemory, n, used, b.blocks*blockSize)
	}
	at := head - 1
	if err := b.removeFree(at, from); err != nil {
		return 0, err
	}
	for from > order {
		from--
		if err := b.pushFree(at+1<<from, from); err != nil {
			return 0, err
		}
	}
	if err := b.setState(at, stateLive|byte(order)); err != nil {
		return 0, err
	}
	return blocksOffset(b.blocks) + at*blockSize, b.addUsage(1, order)
}

// free frees the block at an offset.
func (b buddy) free(off uint64) error {
	order, at, err := b.liveBlock(off)
	if err != nil {
		return err
	}
	if err := b.addUsage(-1, order); err != nil {
		return err
	}
	for order < orders-1 {
		other := at ^ 1<<order
		if other+1<<order > b.blocks {
			break
		}
		state, err := b.blockState(other)
		if err != nil {
			return err
		}
		if state != stateFree+byte(order) {
			break
		}
		if err := b.removeFree(other, order); err != nil {
			return err
		}
		if err := b.setState(max(at, other), 0); err != nil {
			return err
		}
		at = min(at, other)
		order++
	}
	return b.pushFree(at, order)
}

// liveBlock returns the order and number of the allocated block at an offset.
func (b buddy) liveBlock(off uint64) (order int, at uint64, err error) {
	from := blocksOffset(b.blocks)
	at = (off - from) / blockSize
	if off < from || at >= b.blocks || (off-from)%blockSize != 0 {
		return 0, 0, fmt.Errorf("%w: blocks begin at multiples of %d from %d to %d", ErrNotAllocated, blockSize, from, from+b.blocks*blockSize)
	}
	state, err := b.blockState(at)
	if err == nil && state&stateLive == 0 {
		err = ErrNotAllocated
	}
	order = int(state &^ stateLive)
	if err == nil && (order >= orders || 1<<order > b.blocks-at) {
		err = fmt.Errorf("%w: heap: order %d of block %d is invalid", ErrDamaged, order, at)
	}
	return order, at, err
}

// addUsage adds n blocks of an order to the usage counts.
func (b buddy) addUsage(n int, order int) error {
	live, err := b.getWord(offLive)
	if err != nil {
		return err
	}
	bytes, err := b.getWord(offBytes)
	b.setWord(offLive, live+uint64(n))
	b.setWord(offBytes, bytes+uint64(n)*(blockSize<<order))
	return err
}

// linksOffset returns the offset of a free block's links.
func (b buddy) linksOffset(at uint64) uint64 { return blocksOffset(b.blocks) + at*blockSize }

// pushFree inserts a block at the head of its free list.
func (b buddy) pushFree(at uint64, order int) error {
	head := offHeads + 8*uint64(order)
	next, err := b.getWord(head)
	if err != nil {
		return err
	}
	if next > b.blocks {
		return fmt.Errorf("%w: heap: free list begins at block %d of %d", ErrDamaged, next, b.blocks)
	}
	b.setWord(b.linksOffset(at)+nodeNext, next)
	b.setWord(b.linksOffset(at)+nodeBefore, 0)
	if next != 0 {
		b.setWord(b.linksOffset(next-1)+nodeBefore, at+1)
	}
	b.setWord(head, at+1)
	return b.setState(at, stateFree+byte(order))
}

// removeFree removes a block from its free list.
func (b buddy) removeFree(at uint64, order int) error {
	if at >= b.blocks || 1<<order > b.blocks-at {
		return fmt.Errorf("%w: heap: free block %d of order %d exceeds the %d blocks", ErrDamaged, at, order, b.blocks)
	}
	state, err := b.blockState(at)
	if err != nil {
		return err
	}
	if _, known := b.words[b.linksOffset(at)+nodeNext]; !known {
		if err := b.fetchWords(b.linksOffset(at)+nodeNext, 2); err != nil {
			return err
		}
	}
	next, err := b.getWord(b.linksOffset(at) + nodeNext)
	if err != nil {
		return err
	}
	before, err := b.getWord(b.linksOffset(at) + nodeBefore)
	if err != nil {
		return err
	}
	if state != stateFree+byte(order) || next > b.blocks || before > b.blocks {
		return fmt.Errorf("%w: heap: free block %d has state %#x and neighbors %d and %d: write after free", ErrDamaged, at, state, before, next)
	}
	if before == 0 {
		b.setWord(offHeads+8*uint64(order), next)
	} else {
		b.setWord(b.linksOffset(before-1)+nodeNext, next)
	}
	if next != 0 {
		b.setWord(b.linksOffset(next-1)+nodeBefore, before)
	}
	return b.setState(at, 0)
}

// blockState returns the state of a block. Eight states share a word.
func (b buddy) blockState(at uint64) (byte, error) {
	w, err := b.getWord(offStates + at&^7)
	return byte(w >> (8 * (at & 7))), err
}

// setState changes the state of a block.
func (b buddy) setState(at uint64, state byte) error {
	w, err := b.getWord(offStates + at&^7)
	shift := 8 * (at & 7)
	b.setWord(offStates+at&^7, w&^(0xff<<shift)|uint64(state)<<shift)
	return err
}
