package perftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// An area is the memory of one queue pair: a buffer to send from or read into, and one to receive
// in. Small messages advance through both in steps of whole cache lines, as the peer's do.
type area struct {
	mr   verbs.MR
	send int // offset
	recv int // offset; of UD, the payload's: the GRH is in front
}

// strideLen returns the length of either buffer of a queue pair.
func (p *plan) strideLen() int {
	n := roundUp(max(p.maxMessageSize(), p.cycleBuffer), p.cacheLineSize)
	if p.Connection == verbs.UD || p.pollsMemory() {
		n += p.cacheLineSize
	}
	return n
}

// pollsMemory reports whether a side detects a message by its last byte in memory. The message
// then ends with a whole word, which the adapter stores last; the last byte of a message without a
// whole word is polled without ordering, as in C.
func (p *plan) pollsMemory() bool {
	return p.Test == (Test{Write, Latency}) && !p.WithImm
}

// registerMemory registers the memory of all queue pairs.
func (e *endpoint) registerMemory() error {
	flags := verbs.AccessLocalWrite
	switch e.Test.Verb {
	case Write:
		flags |= verbs.AccessRemoteWrite
	case Read:
		flags |= verbs.AccessRemoteRead
	case Atomic:
		flags |= verbs.AccessRemoteAtomic
	}
	e.access = flags &^ verbs.AccessLocalWrite
	stride, front := e.strideLen(), 0
	switch {
	case e.Connection == verbs.UD:
		front = e.cacheLineSize // holds the GRH at its end
	case e.pollsMemory():
		front = -e.maxMessageSize() & 7
	}
	e.pattern = e.testPattern(stride)
	regions, each := 1, e.QPs
	if e.MRPerQP {
		regions, each = e.QPs, 1
	}
	for range regions {
		mr, err := e.pd.RegMR(alignedBytes(2*each*stride), flags)
		if err != nil {
			return err
		}
		e.mrs = append(e.mrs, mr)
		for i := range each {
			e.areas = append(e.areas, area{mr, i * stride, (each+i)*stride + front})
		}
		e.fillMemory(mr.Bytes(), each*stride)
	}
	return nil
}

// alignedBytes returns n bytes at a multiple of the page size.
func alignedBytes(n int) []byte {
	b := make([]byte, n+pageSize)
	off := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (pageSize - 1)
	return b[off : off+n : off+n]
}

// messageSlots returns the distance and the number of the slots through which messages of a size
// advance.
func (p *plan) messageSlots(size int) (by, slots int) {
	by = roundUp(size, p.cacheLineSize)
	if size > p.cycleBuffer/2 {
		return 0, 1
	}
	return by, p.cycleBuffer / by
}

// receiveSlots is messageSlots for receives, which in UD begin with the GRH.
func (p *plan) receiveSlots(size int) (by, slots int) {
	if p.Connection == verbs.UD {
		size += grhLen
	}
	return p.messageSlots(size)
}

// testPattern returns the first n bytes of the test's data: the repeated payload, or a pattern
// that differs by position.
func (p *plan) testPattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(uint32(i+1) * 2654435761 >> 24) // Knuth's multiplicative hash
	}
	for at := 0; len(p.Payload) > 0 && at < n; at += len(p.Payload) {
		copy(b[at:], p.Payload)
	}
	return b
}

// fillMemory fills the source half of the memory with the pattern; the other half stays 0. half is
// the length of either.
func (e *endpoint) fillMemory(b []byte, half int) {
	switch e.Test.Verb {
	case Send, Write:
		b = b[:half]
	case Read:
		b = b[half:]
	case Atomic:
		return
	}
	for at := 0; at < len(b); at += len(e.pattern) {
		copy(b[at:], e.pattern)
	}
}

// A DataError reports memory with unexpected content after a test.
type DataError struct {
	QP        int // index
	Offset    int // of the first wrong byte in its memory
	Got, Want uint64
}

// Error implements error.
func (d *DataError) Error() string {
	return fmt.Sprintf("wrong data: at offset %d of queue pair %d is %#x and should be %#x; are both sides run with --data_validation and the same payload?", d.Offset, d.QP, d.Got, d.Want)
}

// syncMemory orders the adapter's writes before this side's reads, and these before its next
// writes.
func (e *endpoint) syncMemory() { e.dev.Progress() }

// receivesData reports whether messages write into this side's memory.
func (e *endpoint) receivesData() bool {
	switch {
	case e.Test.Verb == Atomic:
		return false // except for the sum
	case e.Test.Verb == Read:
		return e.sends
	}
	return !e.client || e.Bidirectional || e.Test.Metric == Latency
}

// validateMemory compares the content that n messages of a size have left on each queue pair with
// the data sent. It ignores the last tail bytes of a message.
func (e *endpoint) validateMemory(size, n, tail int) error {
	if !e.Validate || n == 0 || !e.receivesData() {
		return nil
	}
	e.syncMemory()
	defer e.syncMemory()
	by, slots := e.messageSlots(size)
	toBy, toSlots := e.receiveSlots(size)
	if e.Test.Metric == Latency {
		slots, toSlots = 1, 1
	}
	for q, at := range e.areas {
		to := at.recv
		if e.Test.Verb == Read {
			to = at.send
		}
		memory := at.mr.Bytes()
		for slot := range min(n, toSlots) {
			last := slot + (n-1-slot)/toSlots*toSlots // message that came here last
			want := e.pattern[last%slots*by:][:size-tail]
			got := memory[to+slot*toBy:][:size-tail]
			if bytes.Equal(got, want) {
				continue
			}
			for i := range want {
				if got[i] != want[i] {
					return &DataError{q, slot*toBy + i, uint64(got[i]), uint64(want[i])}
				}
			}
		}
	}
	return nil
}

// validateSums compares the sum of the counters with the number of fetch-and-adds to each queue
// pair's memory.
func (e *endpoint) validateSums(n int) error {
	if !e.Validate || e.Test.Verb != Atomic || e.Atomic != FetchAndAdd {
		return nil
	}
	_, slots := e.messageSlots(atomicSize)
	by, _ := e.messageSlots(atomicSize)
	for q, at := range e.areas {
		var sum uint64
		for slot := range slots {
			sum += at.mr.LoadUint64(at.recv + slot*by)
		}
		if sum != uint64(n)*addend {
			return &DataError{q, 0, sum, uint64(n) * addend}
		}
	}
	return nil
}

// ParsePayload parses the format of perftest's --payload_file_path: words of 32 bits in
// hexadecimal digits separated by commas, little-endian in memory.
func ParsePayload(text string) ([]byte, error) {
	var payload []byte
	for i, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' }) {
		digits, ok := strings.CutPrefix(strings.ToLower(word), "0x")
		n, err := strconv.ParseUint(digits, 16, 32)
		if !ok || err != nil {
			if len(word) > 20 {
				word = word[:20] + "..."
			}
			return nil, fmt.Errorf("payload: word %d is %q; write 0xaaaaaaaa,0xbbbbbbbb,...", i+1, word)
		}
		payload = binary.LittleEndian.AppendUint32(payload, uint32(n))
	}
	if len(payload) == 0 {
		return nil, fmt.Errorf("payload: empty; write 0xaaaaaaaa,0xbbbbbbbb,...")
	}
	return payload, nil
}

// byteOf returns the byte at an offset of a word in memory.
func byteOf(word uint64, off int) byte {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], word)
	return b[off]
}
