package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp"
)

// linkedList is the implementation of a list: elements in blocks of their own, at any rank, doubly linked.
//
//	0    kindNode
//	8    the list
//	16   the next element, or Null
//	24   the previous element, or Null
//	32   length of the value in bytes
//	40   the value
type linkedList struct{ object }

// Indices of the words of a list's header.
const (
	chainFirst = iota // element address, or Null
	chainLast
)

const (
	nodeSize   = 40 // bytes before the value
	linkNext   = 16 // words of an element that its neighbors change
	linkBefore = 24
	maxValue   = 1 << 30 // bytes
)

// node is an element.
type node struct {
	at           acp.GA
	next, before acp.GA
	value        []byte
}

// loadNode reads an element.
func (c *linkedList) loadNode(at acp.GA) (n node, err error) {
	if at == acp.Null {
		return n, fmt.Errorf("%w: %v", ErrElement, at)
	}
	b := make([]byte, nodeSize+max(c.size, 0))
	if err := c.s.readBytes(at, b); err != nil {
		return n, err
	}
	w := parseWords(b[:nodeSize])
	switch {
	case w[0] != kindNode.freeWord() || acp.GA(w[1]) != c.ga:
		return n, fmt.Errorf("%w: %v", ErrElement, at)
	case w[4] > maxValue || c.size >= 0 && w[4] != uint64(c.size):
		return n, fmt.Errorf("%w: element of %d bytes at %v", ErrDamaged, w[4], at)
	}
	n = node{at: at, next: acp.GA(w[2]), before: acp.GA(w[3]), value: b[nodeSize:]}
	if c.size < 0 {
		n.value = make([]byte, w[4])
		err = c.s.readBytes(at.Add(nodeSize), n.value)
	}
	return n, err
}

// Links are written to the neighbors, or to the header at the ends of the list.

// setNext adds the write of the forward link of an element, or of the head if of is Null.
func (c *linkedList) setNext(h *header, of, next acp.GA) {
	if of == acp.Null {
		h.words[chainFirst] = uint64(next)
	} else {
		h.writes = append(h.writes, pendingWrite{to: of.Add(linkNext), b: wordBytes(uint64(next))})
	}
}

// setBefore adds the write of the backward link of an element, or of the tail if of is Null.
func (c *linkedList) setBefore(h *header, of, before acp.GA) {
	if of == acp.Null {
		h.words[chainLast] = uint64(before)
	} else {
		h.writes = append(h.writes, pendingWrite{to: of.Add(linkBefore), b: wordBytes(uint64(before))})
	}
}

// insertNode stores a value at a rank, before the element that place returns, or at the end if that is Null.
func (c *linkedList) insertNode(ctx context.Context, rank int, value []byte, place func(h *header) (acp.GA, error)) (at acp.GA, err error) {
	if len(value) > maxValue {
		return acp.Null, fmt.Errorf("%w: value of %d bytes", acp.ErrLength, len(value))
	}
	if at, err = c.s.malloc(ctx, rank, nodeSize+len(value)); err != nil {
		return acp.Null, err
	}
	err = c.withLock(ctx, func(h *header) error {
		next, err := place(h)
		if err != nil {
			return err
		}
		before := acp.GA(h.words[chainLast])
		if next != acp.Null {
			n, err := c.loadNode(next)
			if err != nil {
				return err
			}
			before = n.before
		}
		c.setNext(h, before, at)
		c.setBefore(h, next, at)
		mine := wordBytes(kindNode.freeWord(), uint64(c.ga), uint64(next), uint64(before), uint64(len(value)))
		h.length++
		h.writes = append(h.writes, pendingWrite{to: at, b: append(mine, value...)})
		return nil
	})
	if err != nil {
		return acp.Null, errors.Join(err, c.s.free(withoutCancel(ctx), at))
	}
	return at, nil
}

// removeNode removes the element that choose returns, and returns its value.
func (c *linkedList) removeNode(ctx context.Context, choose func(h *header) (acp.GA, error)) (value []byte, err error) {
	err = c.withLock(ctx, func(h *header) error {
		at, err := choose(h)
		if err != nil {
			return err
		}
		n, err := c.loadNode(at)
		if err != nil {
			return err
		}
		value = n.value
		h.length--
		h.garbage = at
		c.setNext(h, n.before, n.next)
		c.setBefore(h, n.next, n.before)
		h.writes = append(h.writes, pendingWrite{to: at, b: wordBytes(kindDead.freeWord())})
		return nil
	})
	return value, err
}

// walkNodes reads all elements. It checks each element's backward link, so it cannot loop.
func (c *linkedList) walkNodes(h *header) (list []node, err error) {
	before := acp.Null
	for at := acp.GA(h.words[chainFirst]); at != acp.Null; {
		n, err := c.loadNode(at)
		if err == nil && n.before != before {
			err = fmt.Errorf("%w: element at %v follows %v, but its backward link is %v", ErrDamaged, at, before, n.before)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, n)
		before, at = at, n.next
	}
	if uint64(len(list)) != h.length || before != acp.GA(h.words[chainLast]) {
		return nil, fmt.Errorf("%w: list of %d elements ends after %d", ErrDamaged, h.length, len(list))
	}
	return list, nil
}

// destroyList frees the list and its elements.
func (c *linkedList) destroyList(ctx context.Context) error {
	return c.destroyObject(ctx, func(h *header) error { return c.freeNodes(ctx, h) })
}

// freeNodes frees the elements.
func (c *linkedList) freeNodes(ctx context.Context, h *header) error {
	list, err := c.walkNodes(h)
	if err != nil {
		return err
	}
	h.length, h.words = 0, [3]uint64{}
	for _, n := range list {
		err = errors.Join(err, c.s.writeAll(pendingWrite{to: n.at, b: wordBytes(kindDead.freeWord())}), c.s.free(withoutCancel(ctx), n.at))
	}
	return err
}
