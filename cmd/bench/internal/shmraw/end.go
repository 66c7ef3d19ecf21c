package shmraw

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/bench/internal/sharedfile"
)

const (
	flagOffset = 0       // a cache line for each direction
	ringBytes  = 4 << 20 // of one direction: larger than a processor's own cache
	ringStart  = 4096    // of the first ring; a page of control words precedes each
	fileBytes  = 2 * (ringStart + ringBytes)
	regionSize = 4 << 20 // memory of each process that messages come from and go to
	sliceBytes = 64 << 10
	batchTrips = 64 // round trips between two readings of the clock

	spinLimit = 20 * time.Second // until a process that waits gives up
)

var errSilent = errors.New("shmraw: the other process does not answer")

// An end is one of the two processes.
type end struct {
	rank   int
	flag   uint64 // last value
	flags  [2]*uint64
	out    ring
	in     ring
	region []byte
}

// A ring is one direction.
type ring struct {
	consumed *uint64
	records  []byte
	next     uint64
	seen     uint64 // producer: value of consumed
}

// recordLine is the alignment of a record, the size of a cache line.
const recordLine = 64

func serveEnd(ctx context.Context, w *proc.Worker, path string) error {
	mem, err := sharedfile.Map(path, fileBytes)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	e := &end{rank: w.Rank, region: make([]byte, regionSize+ringBytes)}
	for i := range e.flags {
		e.flags[i] = wordAt(mem, flagOffset+2*recordLine*(i+1))
	}
	for i := range 2 {
		part := mem[i*(ringStart+ringBytes):][:ringStart+ringBytes]
		r := ring{consumed: wordAt(part, 8*recordLine), records: part[ringStart:]}
		if i == w.Rank {
			e.out = r
		} else {
			e.in = r
		}
	}
	for i := range e.region {
		e.region[i] = byte(i)
	}
	return proc.Serve(ctx, w, func(ctx context.Context, r request) (reply, error) {
		switch r.Kind {
		case flagLatency:
			return e.measureLatency(ctx, r.Iters, e.exchangeFlag)
		case ringLatency:
			return e.measureLatency(ctx, r.Iters, func() bool { return e.exchangeMessage(r.Size) })
		}
		return e.measureBandwidth(r.Size, r.For)
	})
}

func wordAt(b []byte, off int) *uint64 { return (*uint64)(unsafe.Pointer(&b[off])) }

// measureLatency runs round trips in batches, whose mean half is recorded.
func (e *end) measureLatency(ctx context.Context, iters int, exchange func() bool) (reply, error) {
	half := measure.NewLatency()
	for range max(1, iters/batchTrips) {
		start := time.Now()
		for range batchTrips {
			if !exchange() {
				return reply{}, errSilent
			}
		}
		half.Record(time.Since(start) / (2 * batchTrips))
		if ctx.Err() != nil {
			return reply{}, context.Cause(ctx)
		}
	}
	return reply{Latency: half}, nil
}

// exchangeFlag passes a number to and fro.
func (e *end) exchangeFlag() bool {
	e.flag++
	if e.rank == 0 {
		atomic.StoreUint64(e.flags[0], e.flag)
		return spinUntil(func() bool { return atomic.LoadUint64(e.flags[1]) == e.flag })
	}
	ok := spinUntil(func() bool { return atomic.LoadUint64(e.flags[0]) == e.flag })
	atomic.StoreUint64(e.flags[1], e.flag)
	return ok
}

// exchangeMessage passes a message to and fro.
func (e *end) exchangeMessage(size int) bool {
	if e.rank == 0 {
		return e.sendMessage(e.region[:size]) && e.receiveMessage(e.region[:size])
	}
	return e.receiveMessage(e.region[:size]) && e.sendMessage(e.region[:size])
}

// sendMessage copies a message into the ring, in records of at most sliceBytes.
func (e *end) sendMessage(m []byte) bool {
	for len(m) > 0 {
		n := min(len(m), sliceBytes)
		if !e.out.put(m[:n]) {
			return false
		}
		m = m[n:]
	}
	return true
}

// receiveMessage copies a message out of the ring.
func (e *end) receiveMessage(m []byte) bool {
	for len(m) > 0 {
		n, ok := e.in.get(m)
		if !ok {
			return false
		}
		m = m[n:]
	}
	return true
}

// measureBandwidth moves messages from rank 0 to rank 1. Their number is sent first in each batch.
func (e *end) measureBandwidth(size int, d time.Duration) (reply, error) {
	var moved int64
	off := 0
	move := func(message func([]byte) bool) bool {
		off = (off + size) % regionSize &^ (recordLine - 1)
		moved += int64(size)
		return message(e.region[off : off+size])
	}
	more := [8]byte{1}
	start := time.Now()
	for last := false; !last; {
		if e.rank == 0 {
			if last = time.Since(start) >= d; last {
				more[0] = 0
			}
			if !e.sendMessage(more[:]) {
				return reply{}, errSilent
			}
		} else {
			if !e.receiveMessage(more[:]) {
				return reply{}, errSilent
			}
			last = more[0] == 0
		}
		for i := 0; i < max(1, ringBytes/size) && !last; i++ {
			ok := false
			if e.rank == 0 {
				ok = move(e.sendMessage)
			} else {
				ok = move(e.receiveMessage)
			}
			if !ok {
				return reply{}, errSilent
			}
		}
	}
	if !e.exchangeFlag() { // all is received
		return reply{}, errSilent
	}
	return reply{Bytes: moved, Elapsed: time.Since(start)}, nil
}

// put appends a record: a word, which is stored last, and the message behind it.
func (r *ring) put(m []byte) bool {
	need := uint64(8+len(m)+recordLine-1) &^ (recordLine - 1)
	if left := ringBytes - r.next%ringBytes; left < need+recordLine {
		if !r.waitFree(left + recordLine) {
			return false
		}
		atomic.StoreUint64(wordAt(r.records, int((r.next+left)%ringBytes)), 0)
		atomic.StoreUint64(wordAt(r.records, int(r.next%ringBytes)), skipWord)
		r.next += left
	}
	if !r.waitFree(need + recordLine) {
		return false
	}
	at := int(r.next % ringBytes)
	copy(r.records[at+8:], m)
	r.next += need
	atomic.StoreUint64(wordAt(r.records, int(r.next%ringBytes)), 0)
	atomic.StoreUint64(wordAt(r.records, at), uint64(len(m))|validWord)
	return true
}

const (
	validWord = 1 << 63
	skipWord  = 1 << 62
)

// waitFree waits until n bytes from the next record on are free.
func (r *ring) waitFree(n uint64) bool {
	if r.next+n-r.seen <= ringBytes {
		return true
	}
	return spinUntil(func() bool {
		r.seen = atomic.LoadUint64(r.consumed)
		return r.next+n-r.seen <= ringBytes
	})
}

// get copies the message of the next record and returns its length.
func (r *ring) get(m []byte) (n int, ok bool) {
	for {
		word := wordAt(r.records, int(r.next%ringBytes))
		var w uint64
		if !spinUntil(func() bool { w = atomic.LoadUint64(word); return w != 0 }) {
			return 0, false
		}
		if w == skipWord {
			r.next += ringBytes - r.next%ringBytes
			continue
		}
		n = copy(m, r.records[int(r.next%ringBytes)+8:][:w&^validWord])
		r.next += uint64(8+n+recordLine-1) &^ (recordLine - 1)
		atomic.StoreUint64(r.consumed, r.next)
		return n, true
	}
}

// spinUntil polls until done is true, and reports false after spinLimit.
func spinUntil(done func() bool) bool {
	var deadline time.Time
	for i := 1; !done(); i++ {
		if i%(1<<20) != 0 {
			continue
		}
		switch now := time.Now(); {
		case deadline.IsZero():
			deadline = now.Add(spinLimit)
		case now.After(deadline):
			return false
		}
		runtime.Gosched()
	}
	return true
}
