package perftest

import (
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
