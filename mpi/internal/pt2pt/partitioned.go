package pt2pt

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/partitioned"
)

// partitionedMessage is one side of a partitioned message (MPI 4.1, chapter 4). Without a peer
// both sides are nil.
type partitionedMessage struct {
	send        *partitioned.Send
	recv        *partitioned.Recv
	source, tag int // of a receive
	partitions  int
	peer        string // for errors
}

// The operations of partitioned messages.
const (
	opPartitionedSend    = "partitioned send"
	opPartitionedReceive = "partitioned receive"
)

// PsendInit makes a partitioned send.
func (c *Comm) PsendInit(t *partitioned.Table, b datatype.Buffer, partitions, dest, tag int) (*Request, error) {
	m := &partitionedMessage{partitions: partitions, peer: describeDest(dest, tag)}
	err := c.checkArgs(b, dest, tag, false)
	if err == nil {
		err = partitioned.CheckPartitions(b, partitions)
	}
	if err == nil && dest != comm.ProcNull {
		m.send, err = t.NewSend(c.Comm, b, partitions, dest, tag)
	}
	if err != nil {
		return nil, c.Fail("partitioned-send-init", m.peer, err)
	}
	r := &Request{comm: c, op: opPartitionedSend, persistent: true, partitioned: m, start: startPartitions}
	if m.send != nil {
		r.free = m.send.Free
	}
	return r, nil
}

// PrecvInit makes a partitioned receive. It has no wildcards.
func (c *Comm) PrecvInit(t *partitioned.Table, b datatype.Buffer, partitions, source, tag int) (*Request, error) {
	m := &partitionedMessage{source: source, tag: tag, partitions: partitions, peer: describeSource(source, tag)}
	err := c.checkArgs(b, source, tag, false)
	if err == nil {
		err = b.Check(true)
	}
	if err == nil {
		err = partitioned.CheckPartitions(b, partitions)
	}
	if err == nil && source != comm.ProcNull {
		m.recv, err = t.NewRecv(c.Comm, b, partitions, source, tag)
	}
	if err != nil {
		return nil, c.Fail("partitioned-receive-init", m.peer, err)
	}
	r := &Request{comm: c, op: opPartitionedReceive, persistent: true, partitioned: m, start: startPartitions}
	if m.recv != nil {
		r.free = m.recv.Free
	}
	return r, nil
}

// startPartitions starts a partitioned request.
func startPartitions(r *Request) error {
	m := r.partitioned
	err := r.comm.Usable()
	switch {
	case err != nil:
	case m.send != nil:
		err = m.send.Start()
	case m.recv != nil:
		err = m.recv.Start()
	default:
		r.neverStarted = true
	}
	if err != nil {
		return r.comm.Fail(r.op, m.peer, err)
	}
	return nil
}

// Pready marks the partitions [from, to) of a partitioned send as ready. It may be called
// concurrently. r is not null.
func (r *Request) Pready(from, to int) error {
	m, err := r.partitioned, error(nil)
	switch {
	case m == nil || r.op != opPartitionedSend:
		err = fmt.Errorf("%w: not a partitioned send", collective.ErrRequest)
	case m.send != nil:
		err = m.send.Pready(from, to)
	case from < 0 || from > to || to > m.partitions:
		err = partitioned.RangeError(from, to, m.partitions)
	}
	if err != nil {
		return r.comm.Fail("partition-ready", r.describePeer(), err)
	}
	return nil
}

// Parrived reports whether a partition of a partitioned receive has arrived. It may be called
// concurrently. r is not null.
func (r *Request) Parrived(partition int) (arrived bool, err error) {
	m := r.partitioned
	switch {
	case m == nil || r.op != opPartitionedReceive:
		err = fmt.Errorf("%w: not a partitioned receive", collective.ErrRequest)
	case partition < 0 || partition >= m.partitions:
		err = partitioned.RangeError(partition, partition+1, m.partitions)
	case m.recv != nil:
		arrived, err = m.recv.Parrived(partition)
	default:
		arrived = true
	}
	if err != nil {
		return false, r.comm.Fail("partition-arrived", r.describePeer(), err)
	}
	return arrived, nil
}

// isReady reports whether a message that is started is done.
func (m *partitionedMessage) isReady() bool {
	if m.send != nil {
		return m.send.Ready()
	}
	return m.recv.Ready()
}

// describeWait describes the wait for the message.
func (m *partitionedMessage) describeWait() deadlock.Call {
	if m.send != nil {
		return m.send.DescribeWait()
	}
	return m.recv.DescribeWait()
}

// takePartitions returns the status and the error of a partitioned message that is done.
func (r *Request) takePartitions() (s Status, err error) {
	if m := r.partitioned; m.send != nil {
		s, err = nullStatus, m.send.Finish()
	} else {
		s, err = Status{Source: m.source, Tag: m.tag, Bytes: m.recv.Bytes()}, m.recv.Finish()
	}
	if err != nil {
		return Status{}, r.comm.Fail(r.op, r.describePeer(), err)
	}
	return s, nil
}
