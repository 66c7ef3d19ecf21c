package fabric

import (
	"context"
	"errors"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Fabric carries the packets of a rank. All methods but Block and Close are
// called with the engine's lock held.
type Fabric interface {
	protocol.Net

	// Poll handles what has come, without waiting, and reports whether there
	// was anything.
	Poll() bool

	// Flush sends what was kept back to leave together.
	Flush()

	// Block returns when Poll may find something, or ctx has ended, whose
	// error it then returns. It is called by one goroutine at a time, without
	// the lock.
	Block(ctx context.Context) error

	// ConnectAll makes the connections to all ranks, which otherwise are made
	// when they are first needed. Without the lock.
	ConnectAll(ctx context.Context) error

	// Disconnect ends the connection to a rank that others have lost, or lets there be
	// none: Core.FailPeer follows.
	Disconnect(rank int, why error)

	// Stats are figures by name.
	Stats() map[string]uint64

	// Close ends all connections. The other ranks are known to be about to do
	// the same. Without the lock.
	Close(ctx context.Context) error
}

// Host is the engine of a rank, as its Fabric sees it.
type Host interface {
	// Do runs f with the lock held, and wakes who waits for what came of it.
	// Goroutines of a Fabric use it; its other methods run in such an f.
	Do(f func(*protocol.Core))

	// Core is the protocol of the rank, for methods that have the lock.
	Core() *protocol.Core
}

// SharedCQ is a completion queue of another fabric, that one uses which is, as that one,
// a part of a third. They do not poll it: the third does, and hands each what is its
// own.
type SharedCQ struct {
	CQ               verbs.CQ
	OtherCompletions int // completions that there may be of others
}

// Book is where ranks find each other's addresses: a process manager's.
type Book interface {
	Rank() int
	Size() int
	JobID() string
	Put(key, value string) error
	Get(ctx context.Context, key string) (string, error)
	Fence(ctx context.Context) error
}

// Errors of connections, wrapped with the rank they concern.
var (
	ErrRefused = errors.New("not a rank of this job")
	ErrClosed  = errors.New("the fabric is closed")
)
