package shm

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// The layout of a ring's memory: a page of control words, each in a cache line of its own, and
// the records. A record begins at a multiple of 64 bytes with its word, and the packets follow: the
// word and a small packet are in one cache line. The counters are bytes since the ring was made; the
// position is the counter modulo the size.
const (
	offConsumed = 0   // counter of the consumer: space before it may be written again
	offAsleep   = 128 // nonzero while the consumer does not look at the ring, or is about to sleep
	controlSize = 4096

	lineSize   = 64
	headerSize = 8
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

func newWord(bytes, segment int, tos uint8, sealed bool) word {
	w := wordValid | word(bytes) | word(segment)<<16 | word(tos)<<32
	if sealed {
		w |= wordSealed
	}
	return w
}

// recordSize returns the bytes of the ring that a record of n bytes of packets takes.
func recordSize(n int) int { return roundUp(headerSize + n) }

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
//
// It uses the ring up to limit only, and raises that when the consumer does not keep up, or for large
// records: the system backs the ring with memory on use.
type producer struct {
	ring
	next     uint64 // counter of the next record
	consumed uint64 // last value seen of the consumer's counter

	limit, maxLimit uint64 // bytes, powers of two

	// prepare makes the system back memory that is used for the first time, or reports false.
	prepare func(mem []byte) bool
}

// minLimit is the least part of a ring in bytes that a producer uses: more than four of the largest
// records.
const minLimit = 1 << 18

// largeRecord is the size in bytes from which on a record raises the limit of its ring: streams are
// faster in a ring that is larger than a processor's own cache.
const largeRecord = 16 << 10

func newProducer(r ring, prepare func(mem []byte) bool) producer {
	size := uint64(len(r.records))
	return producer{ring: r, limit: min(size, minLimit), maxLimit: size, prepare: prepare}
}

// setMaxLimit changes the part of the ring in bytes that the producer uses at most.
func (p *producer) setMaxLimit(n uint64) {
	p.maxLimit = min(max(n, minLimit), p.mask+1)
	p.limit = min(p.limit, p.maxLimit)
}

// raiseLimit doubles the part of the ring in use, and reports whether that is possible.
func (p *producer) raiseLimit() bool {
	if p.limit >= p.maxLimit {
		return false
	}
	if p.prepare != nil && !p.prepare(p.records[p.limit:2*p.limit]) {
		p.maxLimit = p.limit
		return false
	}
	p.limit *= 2
	return true
}

// reserveRecord returns space for a record of n bytes of packets, or nil if the ring is full.
// commitRecord completes it.
func (p *producer) reserveRecord(n int) ([]byte, error) {
	need := uint64(recordSize(n)) + lineSize // the word of the next record must fit, too
	for p.next&p.mask+need > p.limit {
		skip := p.mask + 1 - p.next&p.mask
		ok, err := p.hasRoom(skip + need)
		if err != nil {
			return nil, err
		}
		if (!ok || n >= largeRecord || p.isBehind()) && p.raiseLimit() {
			continue
		}
		if !ok {
			return nil, nil
		}
		p.clearWord(p.next + skip)
		p.wordAt(p.next).Store(uint64(wordValid | wordWrap))
		p.next += skip
	}
	if ok, err := p.hasRoom(need); !ok {
		return nil, err
	}
	at := p.next&p.mask + headerSize
	return p.records[at : at+uint64(n) : at+uint64(n)], nil
}

// isBehind reports whether the consumer has a quarter of the part in use still to read. After the wrap the
// records have only this part until the next one.
func (p *producer) isBehind() bool {
	return p.next-p.ring.consumedCounter().Load() > p.limit/4
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
	p.next += uint64(recordSize(w.byteCount()))
	p.clearWord(p.next) // before this record: old packets must not be taken for a word
	p.wordAt(at).Store(uint64(w))
	return p.sleepFlag().Load() != 0 && p.sleepFlag().Swap(0) != 0
}

// clearWord zeroes the word of a record that the consumer cannot reach yet. The atomic store of the
// record before it publishes the zero.
func (p *producer) clearWord(counter uint64) {
	*(*uint64)(unsafe.Pointer(&p.records[counter&p.mask])) = 0
}

// A consumer takes records. One goroutine at a time uses it.
type consumer struct {
	ring
	next     uint64 // counter of the next record
	released uint64 // value of the consumer's counter in the ring
}

// isEmpty reports whether there is no complete record.
func (c *consumer) isEmpty() bool { return c.wordAt(c.next).Load() == 0 }

// takeRecord returns the word and the packets of the next record, or 0 if there is none. The packets
// are in the ring, where the peer can change them, until releaseRecords.
func (c *consumer) takeRecord() (word, []byte, error) {
	w := word(c.wordAt(c.next).Load())
	if w == 0 {
		return 0, nil, nil
	}
	if w&(wordValid|wordWrap) == wordValid|wordWrap {
		c.next += c.mask + 1 - c.next&c.mask
		if w = word(c.wordAt(c.next).Load()); w == 0 {
			return 0, nil, nil
		}
	}
	n := w.byteCount()
	at := c.next&c.mask + headerSize
	if w&wordValid == 0 || w&wordWrap != 0 || n == 0 || w.segmentSize() == 0 || w.segmentSize() > n || at+uint64(n) > c.mask+1 {
		return 0, nil, errBroken
	}
	c.next += uint64(recordSize(n))
	return w, c.records[at : at+uint64(n) : at+uint64(n)], nil
}

// releaseStep is the number of bytes of records from which on releaseRecords tells the producer.
const releaseStep = 16 << 10

// releaseRecords lets the producer write the records again that takeRecord has returned.
func (c *consumer) releaseRecords() {
	if c.next-c.released >= releaseStep {
		c.released = c.next
		c.ring.consumedCounter().Store(c.next)
	}
}

// beginSleep announces that the consumer does not look at the ring, and reports whether it may: then a
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
