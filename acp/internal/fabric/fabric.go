package fabric

import (
	"context"
	"errors"

	"github.com/softrnic/softrnic/internal/rankwire"
)

// Net is the transport of a rank. All methods except Block and Close are called with the host's lock held.
type Net interface {
	// Register registers memory with the adapter: for local use only, or shared with all ranks that know its
	// key.
	Register(buf []byte, shared bool) (Memory, error)

	// Start publishes this rank's address and its card of at most 128 bytes. Other ranks can connect when
	// Start has returned and all ranks have passed a fence.
	Start(card []byte) error

	// Connect starts connecting to a rank, unless it has been started before.
	Connect(rank int)

	// Post queues an operation on memory of another rank. The Net owns op until its owner's OpDone is called.
	// The operation may be held back until Flush. Post never fails: operations beyond the queue depth wait in
	// the Net.
	Post(rank int, op *Op)

	// Flush sends the operations that were held back.
	Flush()

	// HasUnposted reports whether operations on a rank wait for a Poll, for example for room in the send queue.
	// A Net that makes progress by itself has none.
	HasUnposted(rank int) bool

	// ReserveSignals prepares for n more signals in flight, ReleaseSignals for n fewer.
	ReserveSignals(n int) error
	ReleaseSignals(n int)

	// Poll handles completions and signals without blocking, and reports whether there were any.
	Poll() bool

	// Block returns when Poll may find an event, or when ctx ends, with its error in that case. If changed is
	// not nil it also returns when that reports true, unless WatchesMemory is false. It is called by one
	// goroutine at a time, without the lock.
	Block(ctx context.Context, changed func() bool) error

	// WatchesMemory reports whether Block notices at once when an operation of a peer changes memory. A Net
	// whose operations are executed elsewhere does not.
	WatchesMemory() bool

	// Stats returns a snapshot of the counters.
	Stats() Stats

	// Close closes the transport. Incomplete operations are not completed. It is called without the lock.
	Close(ctx context.Context) error
}

// Stats are the counters of a Net, which acp.Stats documents. A Net sets those that it has.
type Stats struct {
	Operations, Signals, StraySignals         uint64
	Connections, Connects, Repaired, Receives uint64
}

// Host is the rank that a Net works for. A Net calls the other methods within DoLocked, or when it is called
// itself.
type Host interface {
	// DoLocked calls f with the lock held.
	DoLocked(f func())

	// PeerFound reports that a rank is connected, and delivers its card. It may be called again for the same
	// rank.
	PeerFound(rank int, card []byte)

	// PeerLost reports that a rank is lost for good, after all operations on it have completed.
	PeerLost(rank int, why error)

	// HandleSignal delivers the immediate data of a put.
	HandleSignal(rank int, imm uint32)
}

// KVS is the key-value space of the process manager, where ranks publish their addresses.
type KVS = rankwire.Book

// Memory is memory registered by a Net. Its methods are those of verbs.MR.
type Memory interface {
	Addr() uint64
	Len() int
	Bytes() []byte
	RKey() uint32
	LoadUint64(off int) uint64
	LoadUint32(off int) uint32
	Close() error
}

// Kind is the kind of an operation.
type Kind uint8

// The kinds of operations.
const (
	Put         Kind = iota // writes local memory, or Inline, to remote memory
	Get                     // reads remote memory into local memory
	CompareSwap             // replaces 8 bytes equal to Compare by Operand; Old is the previous value
	FetchAdd                // adds Operand to 8 bytes; Old is the previous value
)

// InlineMax is the maximum length of Op.Inline in bytes.
const InlineMax = 64

// Op is an operation on memory of another rank.
type Op struct {
	Kind   Kind
	Signal bool // of a Put: deliver Imm at the target after the data

	Mem    Memory // local memory of Put and Get: N bytes at offset Off
	Off, N int
	// Lazy operations are unsignaled: OpDone may be delayed until a later operation that is not lazy, or one
	// of several, completes.
	Lazy   bool
	Inline []byte // data of a Put, instead of Mem

	Addr uint64 // remote memory; a multiple of 8 for atomics
	RKey uint32
	Imm  uint32

	Compare, Operand uint64 // operands of atomics
	Old              uint64 // result of an atomic

	Owner Owner

	// Used by the Net while it owns the operation.
	Next       *Op
	Seq        uint32
	ResultSlot int32
}

// Owner is notified when an operation completes, with the host's lock held. It owns the operation again.
type Owner interface{ OpDone(op *Op, err error) }

// The errors of operations, which wrap the cause.
var (
	ErrAccess = errors.New("acp: access refused by the target's adapter") // wrong key, bounds or access
	ErrLost   = errors.New("acp: rank lost")
	ErrClosed = errors.New("acp: process closed")
)

// OpList is a FIFO queue of operations.
type OpList struct {
	first, last *Op
	n           int
}

// Len returns the number of operations.
func (l *OpList) Len() int { return l.n }

// First returns the first operation, or nil.
func (l *OpList) First() *Op { return l.first }

// Push appends an operation.
func (l *OpList) Push(op *Op) {
	op.Next = nil
	if l.first == nil {
		l.first = op
	} else {
		l.last.Next = op
	}
	l.last = op
	l.n++
}

// Pop removes and returns the first operation, or nil.
func (l *OpList) Pop() *Op {
	op := l.first
	if op != nil {
		l.first, op.Next = op.Next, nil
		l.n--
	}
	return op
}

// Append moves all operations of other to the end of l.
func (l *OpList) Append(other *OpList) {
	for op := other.Pop(); op != nil; op = other.Pop() {
		l.Push(op)
	}
}
