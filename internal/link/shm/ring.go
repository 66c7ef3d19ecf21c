package shm

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// The layout of a ring's memory: a page of control words, each in a cache line of its own, and
// the records. A record begins at a multiple of 64 bytes with its word, and the packets follow: the
// word and a small packet are in one cache line. The next record is behind it, or at the start of the
// chunk that a jump names. Counters are bytes of records and jumps since the ring was made.
const (
	offConsumed = 0   // counter of the consumer: chunks with records before it may be written again
	offAsleep   = 128 // nonzero while the consumer does not look at the ring, or is about to sleep
	controlSize = 4096

	lineSize   = 64
	headerSize = 8
	chunkSize  = 1 << 17 // bytes, more than the largest record and the word behind it
)

// maxRecord is the most bytes of packets in a record, which is that of a GSO group.
const maxRecord = 1<<16 - 1

// A word is the word of a record: zero until the record is complete, then all there is to know about
// it, so that the consumer loads it once.
type word uint64

const (
	wordValid  word = 1 << 63
	wordJump   word = 1 << 62 // no packets: the next record is at the start of the chunk with this number
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
	records []byte // whole chunks
}

// newRing returns the ring in mem, a control page and at least two chunks.
func newRing(mem []byte) (ring, error) {
	size := len(mem) - controlSize
	if size < minLimit || size%chunkSize != 0 {
		return ring{}, fmt.Errorf("shm: ring of %d bytes: want a multiple of %d bytes, at least %d, behind %d", size, chunkSize, minLimit, controlSize)
	}
	return ring{control: mem[:controlSize], records: mem[controlSize:]}, nil
}

func (r *ring) consumedCounter() *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.control[offConsumed]))
}
func (r *ring) sleepFlag() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&r.control[offAsleep]))
}
func (r *ring) wordAt(offset uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.records[offset]))
}

// errBroken is the error of a ring whose words the peer cannot have written by the protocol.
var errBroken = errors.New("shm: the peer wrote an impossible word into the ring")

// A producer appends records. One goroutine at a time uses it.
//
// It fills chunk after chunk, and goes back to the first one as soon as that is free. So it stays in a
// small part of the ring while the consumer keeps up, and has all of it when the consumer is behind: a
// jump leads around the chunks that are still to be read. The system backs the ring with memory on use.
type producer struct {
	ring
	next     uint64   // counter of the next record
	consumed uint64   // last value seen of the consumer's counter
	usedTo   []uint64 // by chunk: counter behind its last record

	offset, end     uint64 // of the next record, and of the free space there
	limit, maxLimit uint64 // of the chunks in use, in bytes

	// prepare makes the system back memory that is used for the first time, or reports false.
	prepare func(mem []byte) bool
}

// minLimit is the least part of a ring in bytes that a producer uses.
const minLimit = 2 * chunkSize

// largeRecord is the size in bytes from which on a record makes its producer use more of the ring: streams
// are faster in a ring that is larger than a processor's own cache.
const largeRecord = 16 << 10

func newProducer(r ring, prepare func(mem []byte) bool) producer {
	size := uint64(len(r.records))
	return producer{ring: r, usedTo: make([]uint64, size/chunkSize), end: chunkSize, limit: minLimit, maxLimit: size, prepare: prepare}
}

// setMaxLimit changes the part of the ring in bytes that the producer uses at most.
func (p *producer) setMaxLimit(n uint64) {
	p.maxLimit = min(max(n, minLimit), uint64(len(p.records)))
	p.limit = min(p.limit, p.maxLimit)
}

// raiseLimit doubles the part of the ring in use, and reports whether that is possible.
func (p *producer) raiseLimit() bool {
	limit := min(2*p.limit, p.maxLimit)
	if limit == p.limit {
		return false
	}
	if p.prepare != nil && !p.prepare(p.records[p.limit:limit]) {
		p.maxLimit = p.limit
		return false
	}
	p.limit = limit
	return true
}

// reserveRecord returns space for a record of n bytes of packets, or nil if the ring is full.
// commitRecord completes it.
func (p *producer) reserveRecord(n int) ([]byte, error) {
	need := uint64(recordSize(n)) + lineSize // the word behind it must fit, too
	if p.offset+need > p.end {
		if ok, err := p.addChunk(n >= largeRecord); !ok {
			return nil, err
		}
	}
	at := p.offset + headerSize
	return p.records[at : at+uint64(n) : at+uint64(n)], nil
}

// addChunk continues the free space with the next chunk, or jumps to another one, and reports whether one is
// free. The next record is in the last chunk of the free space.
func (p *producer) addChunk(large bool) (bool, error) {
	consumed := p.ring.consumedCounter().Load()
	if consumed < p.consumed || consumed > p.next {
		return false, errBroken
	}
	p.consumed = consumed
	if large && p.end == p.limit {
		p.raiseLimit()
	}
	for {
		if p.end < p.limit && p.isFree(p.end/chunkSize) {
			p.end += chunkSize
			return true, nil
		}
		for i := range p.limit / chunkSize {
			if i != p.offset/chunkSize && p.isFree(i) {
				p.jumpTo(i)
				return true, nil
			}
		}
		if !p.raiseLimit() {
			return false, nil
		}
	}
}

// isFree reports whether the consumer has left a chunk.
func (p *producer) isFree(chunk uint64) bool { return p.usedTo[chunk] <= p.consumed }

// jumpTo makes the next record the first one of a free chunk.
func (p *producer) jumpTo(chunk uint64) {
	from := p.offset
	p.next += lineSize
	p.usedTo[from/chunkSize] = p.next
	p.offset, p.end = chunk*chunkSize, (chunk+1)*chunkSize
	p.clearWord(p.offset)
	p.wordAt(from).Store(uint64(wordValid | wordJump | word(chunk)))
}

// commitRecord makes the reserved record visible, and reports whether the consumer must be woken.
func (p *producer) commitRecord(w word) (wake bool) {
	at, size := p.offset, uint64(recordSize(w.byteCount()))
	p.next += size
	p.offset += size
	p.usedTo[at/chunkSize] = p.next
	p.usedTo[p.offset/chunkSize] = p.next // the record may reach into the next chunk
	p.clearWord(p.offset)                 // before this record: old packets must not be taken for a word
	p.wordAt(at).Store(uint64(w))
	return p.sleepFlag().Load() != 0 && p.sleepFlag().Swap(0) != 0
}

// clearWord zeroes the word of a record that the consumer cannot reach yet. The atomic store of the
// record before it publishes the zero.
func (p *producer) clearWord(offset uint64) {
	*(*uint64)(unsafe.Pointer(&p.records[offset])) = 0
}

// A consumer takes records. One goroutine at a time uses it.
type consumer struct {
	ring
	next     uint64 // counter of the next record
	released uint64 // value of the consumer's counter in the ring
	offset   uint64 // of the next record
}

// isEmpty reports whether there is no complete record.
func (c *consumer) isEmpty() bool { return c.wordAt(c.offset).Load() == 0 }

// takeRecord returns the word and the packets of the next record, or 0 if there is none. The packets
// are in the ring, where the peer can change them, until releaseRecords.
func (c *consumer) takeRecord() (word, []byte, error) {
	w := word(c.wordAt(c.offset).Load())
	if w == 0 {
		return 0, nil, nil
	}
	size := uint64(len(c.records))
	if w&(wordValid|wordJump) == wordValid|wordJump {
		to := uint64(w.byteCount()) * chunkSize
		if to >= size {
			return 0, nil, errBroken
		}
		c.next += lineSize
		c.offset = to
		if w = word(c.wordAt(to).Load()); w == 0 {
			return 0, nil, nil
		}
	}
	n := w.byteCount()
	at, end := c.offset+headerSize, c.offset+uint64(recordSize(n))
	if w&wordValid == 0 || w&wordJump != 0 || n == 0 || w.segmentSize() == 0 || w.segmentSize() > n || end >= size {
		return 0, nil, errBroken
	}
	c.next += end - c.offset
	c.offset = end
	return w, c.records[at : at+uint64(n) : at+uint64(n)], nil
}

// releaseStep is the number of bytes of records from which on releaseRecords tells the producer.
const releaseStep = 16 << 10

// releaseRecords lets the producer write the records again that takeRecord has returned, if there are many.
func (c *consumer) releaseRecords() {
	if c.next-c.released >= releaseStep {
		c.releaseAll()
	}
}

// releaseAll lets the producer write all records again that takeRecord has returned. A producer that has
// filled the ring needs the last ones, too: a chunk is free as a whole.
func (c *consumer) releaseAll() {
	if c.next != c.released {
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
