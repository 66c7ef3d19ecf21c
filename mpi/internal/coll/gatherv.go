package coll

import (
	"encoding/binary"
	"fmt"
	"math"
)

// lengthSize is the bytes of a length in a message.
const lengthSize = 8

// blockLengths is a message of the lengths of pieces.
type blockLengths []byte

func (l blockLengths) set(i, n int)        { binary.BigEndian.PutUint64(l[i*lengthSize:], uint64(n)) }
func (l blockLengths) get(i int) int       { return int(binary.BigEndian.Uint64(l[i*lengthSize:])) }
func (l blockLengths) sub(i, n int) []byte { return l[i*lengthSize:][:n*lengthSize] }

// sum is the bytes of n pieces from i on.
func (l blockLengths) sum(i, n int) (total int) {
	for ; n > 0; n-- {
		total += l.get(i)
		i++
	}
	return total
}

// validate is an error if the lengths that came are none.
func (l blockLengths) validate() error {
	total := uint64(0)
	for i := range len(l) / lengthSize {
		n := binary.BigEndian.Uint64(l[i*lengthSize:])
		if n > math.MaxInt-total {
			return fmt.Errorf("%w: a piece of %d bytes was announced, behind others of %d", ErrArgument, n, total)
		}
		total += n
	}
	return nil
}

// gathervBinomial: as gatherBinomial. Only the root knows how long the pieces are,
// so a node tells the one above before it sends, unless that is the root.
//
// Traff, "Hierarchical gather/scatter algorithms with graceful degradation", 2004.
func gathervBinomial(c *Call, root int, send []byte, recv blocks) error {
	t := c.newTree(root)
	if t.node == 0 {
		return gathervRoot(c, t, send, recv)
	}
	l := blockLengths(c.scratch(t.subtreeSize() * lengthSize))
	l.set(0, len(send))
	for d := 1; d < t.maxDistance() && t.hasChild(d); d *= 2 {
		c.irecv(t.child(d), l.sub(d, t.childSubtreeSize(d)))
	}
	if err := c.waitAll(); err != nil {
		return err
	}
	if err := l.validate(); err != nil {
		return err
	}
	all := send
	if t.subtreeSize() > 1 {
		all = c.scratch(l.sum(0, t.subtreeSize()))
		copy(all, send)
		for d, at := 1, len(send); d < t.maxDistance() && t.hasChild(d); d *= 2 {
			n := l.sum(d, t.childSubtreeSize(d))
			c.irecv(t.child(d), all[at:][:n])
			at += n
		}
		if err := c.waitAll(); err != nil {
			return err
		}
	}
	if t.parent() != root {
		c.isend(t.parent(), l)
	}
	c.isend(t.parent(), all)
	return c.waitAll()
}

func gathervRoot(c *Call, t binomialTree, send []byte, recv blocks) error {
	copyUnlessSame(recv.block(t.root), send)
	all := c.scratch(totalSize(recv) - len(recv.block(t.root)))
	at := 0
	for d := 1; t.hasChild(d); d *= 2 {
		from := at
		for i := range t.childSubtreeSize(d) {
			at += len(recv.block(t.rank(d + i)))
		}
		c.irecv(t.child(d), all[from:at])
	}
	if err := c.waitAll(); err != nil {
		return err
	}
	for v := 1; v < c.size; v++ {
		all = all[copy(recv.block(t.rank(v)), all):]
	}
	return nil
}

// totalSize is the bytes of all pieces.
func totalSize(b blocks) (n int) {
	for i := range b.n {
		n += len(b.block(i))
	}
	return n
}
