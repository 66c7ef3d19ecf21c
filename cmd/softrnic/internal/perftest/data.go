package perftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

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
