package shm

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// The layout of a ring's memory: a page of control words, each in a cache line of its own, and
// the records. A record begins at a multiple of 64 bytes with its word; packets follow at the next
// multiple. The counters are bytes since the ring was made; the position is the counter modulo the
// size.
const (
	offConsumed = 0   // counter of the consumer: space before it may be written again
	offAsleep   = 128 // nonzero while the consumer sleeps, or is about to
	controlSize = 4096

	lineSize   = 64
	headerSize = lineSize
)

// maxRecord is the most bytes of packets in a record, which is that of a GSO group.
const maxRecord = 1<<16 - 1

// A word is the word of a record: zero until the record is complete, then all there is to know about
// it, so that the consumer loads it once.
type word uint64

const (
	wordValid  word = 1 << 63
	wordWrap   word = 1 << 62 // no packets: the next record is at the start of the ring
	wordSealed word = 1 << 61 // the packets have an ICRC
)

func newWord(bytes, segment int, tos uint8) word {
	return wordValid | word(bytes) | word(segment)<<16 | word(tos)<<32
}

func (w word) byteCount() int      { return int(w & 0xffff) }
func (w word) segmentSize() int    { return int(w >> 16 & 0xffff) }
func (w word) trafficClass() uint8 { return uint8(w >> 32) }

// roundUp returns n rounded up to whole cache lines.
func roundUp(n int) int { return (n + lineSize - 1) &^ (lineSize - 1) }

// A ring is the memory of one direction.
type ring struct {
	control []byte
	records []byte // a power of two
	mask    uint64
}

// newRing returns the ring in mem, a control page and a power of two of bytes that holds at least two
// of the largest records.
func newRing(mem []byte) (ring, error) {
	size := len(mem) - controlSize
	if size < 4*maxRecord || size&(size-1) != 0 {
		return ring{}, fmt.Errorf("shm: ring of %d bytes: want a power of two of at least %d bytes behind %d", size, 4*(maxRecord+1), controlSize)
	}
	return ring{control: mem[:controlSize], records: mem[controlSize:], mask: uint64(size - 1)}, nil
}

func (r *ring) consumedCounter() *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.control[offConsumed]))
}
func (r *ring) sleepFlag() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&r.control[offAsleep]))
}
func (r *ring) wordAt(counter uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.records[counter&r.mask]))
}

// errBroken is the error of a ring whose words the peer cannot have written by the protocol.
var errBroken = errors.New("shm: the peer wrote an impossible word into the ring")

// A producer appends records. One goroutine at a time uses it.
type producer struct {
	ring
	next     uint64 // counter of the next record
	consumed uint64 // last value seen of the consumer's counter
}

// reserveRecord returns space for a record of n bytes of packets, or nil if the ring is full. commit
// completes it.
func (p *producer) reserveRecord(n int) ([]byte, error) {
	need := uint64(headerSize + roundUp(n))
	size := p.mask + 1
	if left := size - p.next&p.mask; left < need+lineSize { // the word of the next record must fit, too
		ok, err := p.hasRoom(left + lineSize)
		if !ok {
			return nil, err
		}
		start := p.next + left
		p.wordAt(start).Store(0)
		p.wordAt(p.next).Store(uint64(wordValid | wordWrap))
		p.next = start
	}
	if ok, err := p.hasRoom(need + lineSize); !ok {
		return nil, err
	}
	at := p.next&p.mask + headerSize
	return p.records[at : at+uint64(n) : at+uint64(n)], nil
}

// hasRoom reports whether n bytes from the next record on are free.
func (p *producer) hasRoom(n uint64) (bool, error) {
	size := p.mask + 1
	if p.next+n-p.consumed <= size {
		return true, nil
	}
	consumed := p.ring.consumedCounter().Load()
	if consumed < p.consumed || consumed > p.next {
		return false, errBroken
	}
	p.consumed = consumed
	return p.next+n-consumed <= size, nil
}

// commitRecord makes the reserved record visible, and reports whether the consumer must be woken.
func (p *producer) commitRecord(w word) (wake bool) {
	at := p.next
	p.next += uint64(headerSize + roundUp(w.byteCount()))
	p.wordAt(p.next).Store(0) // before this record: old packets must not be taken for a word
	p.wordAt(at).Store(uint64(w))
	return p.sleepFlag().Load() != 0 && p.sleepFlag().Swap(0) != 0
}

// A consumer takes records. One goroutine at a time uses it.
type consumer struct {
	ring
	next uint64 // counter of the next record
}

// isEmpty reports whether there is no complete record.
func (c *consumer) isEmpty() bool { return c.wordAt(c.next).Load() == 0 }

// takeRecord copies the packets of the next record to the buffer, which holds any record, and returns its
// word, or 0 if there is none.
func (c *consumer) takeRecord(to []byte) (word, error) {
	w := word(c.wordAt(c.next).Load())
	if w&wordValid != 0 && w&wordWrap != 0 {
		c.releaseBytes(c.mask + 1 - c.next&c.mask)
		w = word(c.wordAt(c.next).Load())
	}
	if w == 0 {
		return 0, nil
	}
	n := w.byteCount()
	at := c.next&c.mask + headerSize
	if w&wordValid == 0 || w&wordWrap != 0 || n == 0 || w.segmentSize() == 0 || w.segmentSize() > n || at+uint64(n) > c.mask+1 {
		return 0, errBroken
	}
	copy(to[:n], c.records[at:])
	c.releaseBytes(uint64(headerSize + roundUp(n)))
	return w, nil
}

// releaseBytes lets the producer write the next n bytes again.
func (c *consumer) releaseBytes(n uint64) {
	c.next += n
	c.ring.consumedCounter().Store(c.next)
}

// beginSleep announces that the consumer is going to sleep, and reports whether it may: then a
// record that comes later makes commitRecord report that it must be woken.
func (c *consumer) beginSleep() bool {
	c.sleepFlag().Store(1)
	if c.isEmpty() {
		return true
	}
	c.sleepFlag().Store(0)
	return false
}

// endSleep withdraws beginSleep.
func (c *consumer) endSleep() { c.sleepFlag().Store(0) }
