package coll

import (
	"encoding/binary"
	"fmt"
	"math"
)

// gatherLinear sends from every rank to the root. recv is significant only at the root.
func gatherLinear(c *Call, root int, send []byte, recv blocks) error {
	if c.rank != root {
		return c.send(root, send)
	}
	copyUnlessSame(recv.block(root), send)
	for i := range c.size {
		if i != root {
			c.irecv(i, recv.block(i))
		}
	}
	return c.waitAll()
}

// gatherBinomial sends up a binomial tree in ceil(log2 n) rounds; each node sends its
// subtree in one message. Blocks have equal size, known to all ranks.
//
// Thakur, Rabenseifner and Gropp 2005; Chan and others, "Collective communication:
// theory, practice, and experience", 2007.
func gatherBinomial(c *Call, root int, send []byte, recv blocks) error {
	t, size := c.newTree(root), len(send)
	if t.node != 0 {
		all := send
		if t.subtreeSize() > 1 {
			all = c.allocScratch(t.subtreeSize() * size)
			copy(all, send)
			for d := 1; d < t.maxDistance() && t.hasChild(d); d *= 2 {
				c.irecv(t.child(d), all[d*size:][:t.childSubtreeSize(d)*size])
			}
			if err := c.waitAll(); err != nil {
				return err
			}
		}
		return c.send(t.parent(), all)
	}
	copyUnlessSame(recv.block(root), send)
	var wrapped []byte // data of a child whose subtree wraps around rank 0
	from := 0
	for d := 1; t.hasChild(d); d *= 2 {
		to := t.child(d)
		if end := to + t.childSubtreeSize(d); end <= c.size {
			c.irecv(to, recv.blockRange(to, end))
			continue
		}
		from, wrapped = to, c.allocScratch(t.childSubtreeSize(d)*size)
		c.irecv(to, wrapped)
	}
	if err := c.waitAll(); err != nil {
		return err
	}
	n := copy(recv.blockRange(from, c.size), wrapped)
	copy(recv.blockRange(0, c.size), wrapped[n:])
	return nil
}

// gatherTree gathers dense blocks at rank 0; all ranks have memory for all blocks.
func gatherTree(c *Call, b blocks) error {
	t := c.newTree(0)
	for d := 1; d < t.maxDistance() && t.hasChild(d); d *= 2 {
		c.irecv(t.child(d), b.blockRange(t.node+d, t.node+d+t.childSubtreeSize(d)))
	}
	if err := c.waitAll(); err != nil || t.node == 0 {
		return err
	}
	return c.send(t.parent(), b.blockRange(t.node, t.node+t.subtreeSize()))
}

// lengthSize is the size of a length in a message in bytes.
const lengthSize = 8

// blockLengths is a message with the lengths of blocks.
type blockLengths []byte

func (l blockLengths) set(i, n int)        { binary.BigEndian.PutUint64(l[i*lengthSize:], uint64(n)) }
func (l blockLengths) get(i int) int       { return int(binary.BigEndian.Uint64(l[i*lengthSize:])) }
func (l blockLengths) sub(i, n int) []byte { return l[i*lengthSize:][:n*lengthSize] }

// sum returns the total size of n blocks starting at block i.
func (l blockLengths) sum(i, n int) (total int) {
	for ; n > 0; n-- {
		total += l.get(i)
		i++
	}
	return total
}

// validate returns an error if the total of the received lengths overflows.
func (l blockLengths) validate() error {
	total := uint64(0)
	for i := range len(l) / lengthSize {
		n := binary.BigEndian.Uint64(l[i*lengthSize:])
		if n > math.MaxInt-total {
			return fmt.Errorf("%w: block of %d bytes after %d bytes overflows int", ErrArgument, n, total)
		}
		total += n
	}
	return nil
}

// gathervBinomial is gatherBinomial for blocks of different sizes. Only the root knows
// the sizes, so a node sends the lengths of its subtree to its parent first, unless the
// parent is the root.
//
// Traff, "Hierarchical gather/scatter algorithms with graceful degradation", 2004.
func gathervBinomial(c *Call, root int, send []byte, recv blocks) error {
	t := c.newTree(root)
	if t.node == 0 {
		return gathervRoot(c, t, send, recv)
	}
	l := blockLengths(c.allocScratch(t.subtreeSize() * lengthSize))
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
		all = c.allocScratch(l.sum(0, t.subtreeSize()))
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
	all := c.allocScratch(totalSize(recv) - len(recv.block(t.root)))
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

// totalSize returns the total size of all blocks.
func totalSize(b blocks) (n int) {
	for i := range b.n {
		n += len(b.block(i))
	}
	return n
}
