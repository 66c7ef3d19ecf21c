package protocol

import (
	"errors"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// A Request is a send, a receive, or an RMA operation. The caller sets the fields of
// the first group and does not change them until Done. Before reuse it must be zeroed.
type Request struct {
	Envelope  match.Envelope // of a receive, Source is the sender or match.Any; of a send it is ignored
	Dest      int            // target rank of a send or an RMA operation
	Buf       []byte         // owned by the Core until Done
	Sync      bool           // synchronous send: done when matched
	Signature uint64         // signature of the message sent, or expected by a receive; 0 is any (Core.OnSignature)
	Sources   []int          // possible sources of a receive from match.Any; nil is all
	OnDone    func(*Request) // called once when Done, before the current call of the Core returns; may call the Core

	// Results, once Done.
	Done          bool
	Err           error
	Received      match.Envelope // envelope of the message received
	Bytes         int            // transferred
	SentSignature uint64         // of a receive: signature of its message, 0 if the sender set none
	WasUnexpected bool           // of a receive: Core.Receive found its message in the unexpected queue

	node     match.Node[*Request]
	state    state
	scheme   Scheme // rendezvous protocol of a long message
	oneSided bool   // RMA: no FIN to the other rank
	peer     int32  // rank of the transfer
	id       uint64 // number in the request table, known to the peer
	remoteID uint64 // number of the peer's request
	length   uint64 // of the message matched
	key      envelope.Key
	exposed  Registration
	received rangeSet // ranges received (RendezvousCopy)
	offset   uint64   // of the next byte to send (RendezvousCopy)
	atomic   Atomic
	notice   uint32 // immediate data of PutNotify
}

// state is the state of a request. A packet or a call of the net that does not fit it
// is ignored or is an error, and changes nothing.
type state uint8

const (
	stateIdle         state = iota
	stateQueued             // in the send queue of the peer
	stateAwaitMatched       // a synchronous eager send, waits for MATCHED
	stateRTSSent            // a rendezvous send, waits for CTS or FIN
	stateWriting            // a send, waits for Net.RDMAWrite
	stateStreaming          // a send, in DATA packets
	stateUnmatched          // a posted receive; or a send to the own rank without a receive
	stateReading            // a receive, waits for Net.RDMARead
	stateAwaitWrite         // a receive, waits for FIN after an RDMA WRITE, or for DATA
	stateAwaitData          // a receive, waits for DATA
)

// Errors of requests and packets, wrapped with the rank and the details.
var (
	ErrTruncated       = errors.New("mpi: message truncated") // MPI_ERR_TRUNCATE
	ErrLost            = errors.New("mpi: rank lost")         // MPI_ERR_PROC_FAILED
	ErrCanceled        = errors.New("mpi: request canceled")
	ErrProtocol        = errors.New("mpi: protocol violation")
	ErrUnexpectedLimit = errors.New("mpi: too many unexpected messages")
	ErrTooLong         = errors.New("mpi: payload longer than a packet")
)

// Ready reports whether the request is done.
func (r *Request) Ready() bool { return r.Done }

// canMatch reports whether a receive can match a message of a rank.
func (r *Request) canMatch(rank int) bool {
	if r.Envelope.Source != match.Any {
		return int(r.Envelope.Source) == rank
	}
	return r.Sources == nil || slices.Contains(r.Sources, rank)
}

func (r *Request) truncatedError() error {
	return fmt.Errorf("%w: %d bytes came from rank %d with tag %d, buffer has %d", ErrTruncated,
		r.length, r.Received.Source, r.Received.Tag, len(r.Buf))
}
