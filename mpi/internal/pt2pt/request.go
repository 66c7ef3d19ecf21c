package pt2pt

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/onesided"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Request is a communication in progress: a message, a collective call or a one-sided operation.
// It may be used by one goroutine at a time. The nil pointer and the zero Request are the null
// request, which is done.
type Request struct {
	comm         *Comm
	p            protocol.Request
	op           string                 // opSend, opReceive, or the name of another call
	buf          datatype.Buffer        // destination of a receive that is unpacked
	packed       []byte                 // receive buffer of the packed message
	neverStarted bool                   // peer is ProcNull, or the request failed before it started
	background   *collective.Background // collective call, or nil
	rmaResult    *onesided.Result       // of a one-sided operation, or nil
	partitioned  *partitionedMessage    // of a partitioned message, or nil
	err          error                  // error before the start

	pollRound uint64 // last round in which it was tested, of engine.PollStats

	persistent, active bool
	start              func(*Request) error // starts a persistent request; nil after Free
	free               func()
}

// The operations of messages.
const (
	opSend    = "send"
	opReceive = "receive"
)

// Status describes a message that was received or found by a probe.
type Status struct {
	Source, Tag, Bytes int // Bytes of a truncated message is the length of the buffer
	Canceled           bool
}

var (
	// emptyStatus is the status of a null or inactive request (MPI 4.1, 3.7.3).
	emptyStatus = Status{Source: match.Any, Tag: match.Any}
	// nullStatus is the status of communication with comm.ProcNull, or without a message.
	nullStatus = Status{Source: comm.ProcNull, Tag: match.Any}
)

// IsNull reports whether r is the null request.
func (r *Request) IsNull() bool { return r == nil || r.comm == nil }

// isInactive reports whether there is nothing to wait for.
func (r *Request) isInactive() bool { return r.IsNull() || r.persistent && !r.active }

// Ready reports whether the request is done. It implements engine.Waitable.
func (r *Request) Ready() bool {
	switch {
	case r.isInactive() || r.neverStarted:
		return true
	case r.background != nil:
		return r.background.IsDone()
	case r.rmaResult != nil:
		return r.rmaResult.Done
	case r.partitioned != nil:
		return r.partitioned.isReady()
	}
	return r.p.Done
}

// Wait waits until the request is done, and returns its status and its error.
func (r *Request) Wait() (Status, error) { return r.WaitContext(context.Background()) }

// WaitContext is Wait that ends when ctx ends; a nil ctx never ends. The request continues.
func (r *Request) WaitContext(ctx context.Context) (Status, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	var err error
	switch {
	case r.isInactive() || r.neverStarted:
	case r.background != nil:
		err = r.background.Wait(ctx)
	default:
		err = r.comm.Engine.Wait(ctx, r)
	}
	if err != nil {
		return Status{}, r.comm.Fail(r.op, r.describePeer(), err)
	}
	return r.takeResult()
}

// Test reports whether the request is done, and returns its status.
func (r *Request) Test() (Status, bool, error) {
	if !r.isInactive() && !r.neverStarted && !r.comm.Engine.Test((*polledRequest)(r)) {
		return Status{}, false, nil
	}
	s, err := r.takeResult()
	return s, true, err
}

// Cancel cancels a receive that has not matched a message and reports whether it did; Wait then
// returns protocol.ErrCanceled. Sends cannot be canceled.
func (r *Request) Cancel() bool {
	if r.isInactive() || r.neverStarted || r.partitioned != nil {
		return false
	}
	canceled := false
	r.comm.Engine.Do(func(c *protocol.Core) { canceled = c.Cancel(&r.p) })
	return canceled
}

// failBeforeStart makes r a failed request and returns its error. peer describes the peer.
func (r *Request) failBeforeStart(peer string, err error) error {
	r.neverStarted, r.err = true, r.comm.Fail(r.op, peer, err)
	return r.err
}

// takeResult returns the status and the error of a request that is done. A persistent request
// becomes inactive.
func (r *Request) takeResult() (Status, error) {
	if r.isInactive() {
		return emptyStatus, nil
	}
	r.active = false
	switch x := r.rmaResult; {
	case r.background != nil:
		return nullStatus, r.background.Err()
	case r.neverStarted && r.err != nil:
		return Status{}, r.err
	case r.neverStarted:
		return nullStatus, nil
	case r.partitioned != nil:
		return r.takePartitions()
	case x == nil:
		return r.takeMessage()
	case x.Err != nil:
		return nullStatus, r.comm.Fail(r.op, onesided.DescribeTarget(x.Target, x.At), x.Err)
	}
	return nullStatus, nil
}

// takeMessage returns the status and the error of a message that was sent or received, and unpacks
// a received one.
func (r *Request) takeMessage() (Status, error) {
	c := r.comm
	s := Status{Source: c.LocalRank(int(r.p.Received.Source)), Tag: int(r.p.Received.Tag), Bytes: max(0, r.p.Bytes-c.job.signatureSize())}
	if sent := r.p.SentSignature; r.p.Err == nil && !datatype.MessagesMatch(sent, r.p.Signature) {
		r.p.Err = fmt.Errorf("%w: rank %d sent %s with tag %d to a buffer of %s", datatype.ErrSignature, s.Source, datatype.DescribeMessage(sent), s.Tag, datatype.DescribeMessage(r.p.Signature))
	} else if r.packed != nil {
		if err := c.job.unpackMessage(r.buf, r.packed[:r.p.Bytes]); err != nil && r.p.Err == nil {
			r.p.Err = err
		}
		r.packed = nil
	}
	if r.p.Err != nil {
		s.Canceled = errors.Is(r.p.Err, protocol.ErrCanceled)
		return s, c.Fail(r.op, r.describePeer(), r.p.Err)
	}
	return s, nil
}

// describePeer returns the peer and the tag, for errors.
func (r *Request) describePeer() string {
	e := r.p.Envelope
	switch {
	case r.partitioned != nil:
		return r.partitioned.peer
	case r.op == opReceive:
		return fmt.Sprintf("from %s, tag %s", comm.DescribeNumber(r.comm.LocalRank(int(e.Source))), comm.DescribeNumber(int(e.Tag)))
	case r.background != nil || r.rmaResult != nil:
		return ""
	}
	return fmt.Sprintf("to %d, tag %s", r.comm.LocalRank(r.p.Dest), comm.DescribeNumber(int(e.Tag)))
}
