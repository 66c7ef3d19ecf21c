package fabric

import (
	"context"
	"errors"
)

// Net carries operations of a rank. All methods but Block and Close are called with
// the host's lock held.
type Net interface {
	// Register makes memory known to the adapter, for operations of this rank only, or
	// of all ranks that know its key.
	Register(buf []byte, shared bool) (Memory, error)

	// Start begins to be found by other ranks, which get the card, at most 128 bytes. When it has returned,
	// and all ranks have come to a fence, others can be found.
	Start(card []byte) error

	// Connect finds a rank, if that has not been done yet.
	Connect(rank int)

	// Post queues an operation on memory of another rank, which belongs to the Net until
	// its owner hears that it is done. It may be kept until Flush. Nothing is refused: what has to
	// wait for room waits here.
	Post(rank int, op *Op)

	// Flush sends what was kept.
	Flush()

	// ReserveSignals makes ready for n more signals at a time, Forget for n less.
	ReserveSignals(n int) error
	ReleaseSignals(n int)

	// Poll handles what has come, without waiting, and reports whether there was anything.
	Poll() bool

	// Block returns when Poll may find something, or ctx has ended, whose error it
	// then returns. It is called by one goroutine at a time, without the lock.
	Block(ctx context.Context) error

	// Stats are figures by name.
	Stats() map[string]uint64

	// Close ends it. Operations that are not done stay so. Without the lock.
	Close(ctx context.Context) error
}

// Host is the rank that a Net works for. A Net calls the other methods in a function
// that it gives to Do, or when it is called itself.
type Host interface {
	// DoLocked calls f with the lock held.
	DoLocked(f func())

	// PeerFound says that a rank is found, and which card it has. It can be said again.
	PeerFound(rank int, card []byte)

	// PeerLost says that a rank is lost for good, after all operations on it have ended.
	PeerLost(rank int, why error)

	// HandleSignal delivers the immediate data of a put.
	HandleSignal(rank int, imm uint32)
}

// KVS is where ranks find each other's addresses: a process manager's.
type KVS interface {
	Rank() int
	Size() int
	JobID() string
	Put(key, value string) error
	Get(ctx context.Context, key string) (string, error)
}

// Memory is memory that a Net has registered: what verbs.MR has of the same names.
type Memory interface {
	Addr() uint64
	Len() int
	Bytes() []byte
	RKey() uint32
	LoadUint64(off int) uint64
	LoadUint32(off int) uint32
	Dereg() error
}

// Kind is what an operation does.
type Kind uint8

// The kinds.
const (
	Put         Kind = iota // local memory, or Inline, to remote memory
	Get                     // remote memory to local memory
	CompareSwap             // of 8 bytes: if they are Compare they become Operand; Old is what they were
	FetchAdd                // of 8 bytes: Operand is added; Old is what they were
)

// InlineMax is the length of Op.Inline at most.
const InlineMax = 64

// Op is an operation on memory of another rank.
type Op struct {
	Kind   Kind
	Signal bool // a Put that delivers Imm at its target, behind what it has written

	Mem    Memory // local memory of Put and Get: N bytes from byte Off of it
	Off, N int
	// Lazy lets the owner hear only when an operation behind it is done that is not, or one in
	// some: nobody waits for it.
	Lazy   bool
	Inline []byte // of a Put, instead

	Addr uint64 // remote memory; a multiple of 8 of atomics
	RKey uint32
	Imm  uint32

	Compare, Operand uint64 // of atomics
	Old              uint64 // what an atomic has found

	Owner Owner

	// The Net's, while it has the operation.
	Next       *Op
	Seq        uint32
	ResultSlot int32
}

// Owner hears when an operation is done, with the host's lock held. The operation is its own
// again.
type Owner interface{ OpDone(op *Op, err error) }

// Errors of operations, wrapped with what has happened.
var (
	ErrAccess = errors.New("the target's adapter refuses it") // wrong key, bounds or access
	ErrLost   = errors.New("the rank is lost")
	ErrClosed = errors.New("finalized")
)

// OpList is operations in order.
type OpList struct {
	first, last *Op
	n           int
}

// Len is how many there are.
func (l *OpList) Len() int { return l.n }

// First is the first, or nil.
func (l *OpList) First() *Op { return l.first }

// Push puts one to the end.
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

// Pop takes the first, or nil.
func (l *OpList) Pop() *Op {
	op := l.first
	if op != nil {
		l.first, op.Next = op.Next, nil
		l.n--
	}
	return op
}

// Append puts all of another list to the end, which is empty then.
func (l *OpList) Append(other *OpList) {
	for op := other.Pop(); op != nil; op = other.Pop() {
		l.Push(op)
	}
}
