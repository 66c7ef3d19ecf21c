package coll

import (
	"encoding/binary"
	"fmt"
	"math"
)

// lengthSize is the bytes of a length in a message.
const lengthSize = 8

// lengths is a message of the lengths of pieces.
type lengths []byte

func (l lengths) set(i, n int)       { binary.BigEndian.PutUint64(l[i*lengthSize:], uint64(n)) }
func (l lengths) get(i int) int      { return int(binary.BigEndian.Uint64(l[i*lengthSize:])) }
func (l lengths) of(i, n int) []byte { return l[i*lengthSize:][:n*lengthSize] }

// sum is the bytes of n pieces from i on.
func (l lengths) sum(i, n int) (total int) {
	for ; n > 0; n-- {
		total += l.get(i)
		i++
	}
	return total
}

// check is an error if the lengths that came are none.
func (l lengths) check() error {
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
	t := c.tree(root)
	if t.v == 0 {
		return gathervRoot(c, t, send, recv)
	}
	l := lengths(c.scratch(t.below() * lengthSize))
	l.set(0, len(send))
	for d := 1; d < t.reach() && t.has(d); d *= 2 {
		c.irecv(t.child(d), l.of(d, t.belowChild(d)))
	}
	if err := c.wait(); err != nil {
		return err
	}
	if err := l.check(); err != nil {
		return err
	}
	all := send
	if t.below() > 1 {
		all = c.scratch(l.sum(0, t.below()))
		copy(all, send)
		for d, at := 1, len(send); d < t.reach() && t.has(d); d *= 2 {
			n := l.sum(d, t.belowChild(d))
			c.irecv(t.child(d), all[at:][:n])
			at += n
		}
		if err := c.wait(); err != nil {
			return err
		}
	}
	if t.parent() != root {
		c.isend(t.parent(), l)
	}
	c.isend(t.parent(), all)
	return c.wait()
}

func gathervRoot(c *Call, t tree, send []byte, recv blocks) error {
	place(recv.at(t.root), send)
	all := c.scratch(total(recv) - len(recv.at(t.root)))
	at := 0
	for d := 1; t.has(d); d *= 2 {
		from := at
		for i := range t.belowChild(d) {
			at += len(recv.at(t.rank(d + i)))
		}
		c.irecv(t.child(d), all[from:at])
	}
	if err := c.wait(); err != nil {
		return err
	}
	for v := 1; v < c.size; v++ {
		all = all[copy(recv.at(t.rank(v)), all):]
	}
	return nil
}

// total is the bytes of all pieces.
func total(b blocks) (n int) {
	for i := range b.n {
		n += len(b.at(i))
	}
	return n
}
