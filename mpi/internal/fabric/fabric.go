package fabric

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/softrnic/softrnic/internal/rankwire"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// A Fabric carries the packets of a rank. All methods except Block, ConnectAll and
// Close are called with the engine's lock held.
type Fabric interface {
	protocol.Net

	// Poll handles pending events without blocking, and reports whether there were any.
	Poll() bool

	// Flush sends packets that were delayed for coalescing.
	Flush()

	// Block blocks until Poll may find an event or ctx ends, and returns the error of
	// ctx in the latter case. It is called by one goroutine at a time, without the
	// lock.
	Block(ctx context.Context) error

	// ConnectAll starts the connections to all ranks, which otherwise are made on first
	// use. It is called without the lock.
	ConnectAll(ctx context.Context) error

	// Disconnect ends the connection to a rank that has failed elsewhere, or prevents
	// one. Core.FailPeer follows.
	Disconnect(rank int, why error)

	// Stats returns a snapshot of the counters.
	Stats() Stats

	// Close closes all connections. The other ranks are known to be about to do the
	// same. It is called without the lock.
	Close(ctx context.Context) error
}

// A Host is the engine of a rank, for its Fabric.
type Host interface {
	// Do runs f with the lock held, and wakes the goroutines whose wait is over.
	// Goroutines of a Fabric use it; its methods already hold the lock.
	Do(f func(*protocol.Core))

	// PollWhenIdle polls and blocks, until ctx ends, while the program does neither for
	// interval. A Fabric whose packets must be handled while the program computes calls
	// it in a goroutine that ends in Close.
	PollWhenIdle(ctx context.Context, interval time.Duration)

	// Core returns the protocol of the rank, for methods with the lock.
	Core() *protocol.Core

	// Leading reports whether a goroutine is in Block, or between Block and the Poll behind
	// it. No other one handles events then: it would overtake those that Block has
	// received. It is called with the lock held.
	Leading() bool

	// Idle reports whether events are handled on behalf of no call, because the program
	// computes. It is called with the lock held.
	Idle() bool
}

// A SharedCQ is the completion queue that two fabrics share as parts of a third one.
// They do not poll it: the third fabric does, and passes each its completions.
type SharedCQ struct {
	CQ               verbs.CQ
	OtherCompletions int         // maximum number of completions of the other fabric
	Poll             func() bool // handles the completions, and reports whether there were any

	// GrowReceives is called with the lock held when a shared receive queue of the device
	// reaches its limit that is not the one of the caller.
	GrowReceives func(verbs.SRQ)
}

// A Book is the address exchange of the ranks: the key-value space of a process
// manager.
type Book = rankwire.Book

// Errors of connections, wrapped with the rank.
var (
	ErrRefused = rankwire.ErrRefused
	ErrClosed  = errors.New("fabric: closed")
)

// Stats are the counters of a fabric, which mpi.Stats documents. A fabric sets those that it
// has.
type Stats struct {
	Connections, Packets, Coalesced, CreditPackets uint64
	Registrations, RegistrationHits                uint64
	ReceiveBuffers, PacketMemory                   uint64
	Rails, Stripes, Queues                         uint64
	DatagramStats
}

// DatagramStats are the counters of datagrams.
type DatagramStats struct {
	Datagrams, Retransmitted, Probes, Acks, Nacks, NacksReceived uint64
	OutOfOrder, DatagramsSent, DatagramsReceived                 uint64
	AddressHandles, UnknownSenders, Malformed                    uint64
	Drops                                                        map[string]uint64
}

// A LossError is the cause of a rank's failure in a few words.
type LossError struct {
	Reason string
	Err    error // details from the transport
}

// Error implements error.
func (l *LossError) Error() string { return l.Reason }

// Unwrap returns the error of the transport.
func (l *LossError) Unwrap() error { return l.Err }

// WrapLoss summarizes the transport's error about a failed rank. The details, with
// queue pairs and work requests, go to the debug log.
func WrapLoss(rank int, err error) error {
	slog.Debug("mpi: rank lost", "rank", rank, "cause", err)
	var refused *verbs.RefusedError
	var failed *verbs.CompletionError
	switch {
	case errors.As(err, &refused):
		return &LossError{refused.Error(), err}
	case errors.As(err, &failed) && failed.Status == verbs.WCRetryExcErr:
		return &LossError{"no reply", err}
	}
	return err
}
