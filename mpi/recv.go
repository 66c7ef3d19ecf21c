package mpi

import (
	"context"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/pt2pt"
)

// Recv receives a message from source, or AnySource, with tag, or AnyTag (MPI_Recv). A message
// longer than b is truncated, and the error is ErrTruncated.
func (c *Comm) Recv(b Buffer, source, tag int) (Status, error) {
	s, err := c.messageState().Recv(b.data, source, tag)
	return Status(s), err
}

// RecvContext is Recv that ends when ctx ends; a nil ctx never ends. When it ends early no
// message has been received.
func (c *Comm) RecvContext(ctx context.Context, b Buffer, source, tag int) (Status, error) {
	s, err := c.messageState().RecvContext(ctx, b.data, source, tag)
	return Status(s), err
}

// Irecv starts a Recv (MPI_Irecv).
func (c *Comm) Irecv(b Buffer, source, tag int) (*Request, error) {
	r, err := c.messageState().Irecv(b.data, source, tag)
	return handleOf(r), err
}

// Sendrecv sends one message and receives another concurrently (MPI_Sendrecv).
func (c *Comm) Sendrecv(send Buffer, dest, sendTag int, recv Buffer, source, recvTag int) (Status, error) {
	s, err := c.messageState().Sendrecv(send.data, dest, sendTag, recv.data, source, recvTag)
	return Status(s), err
}

// SendrecvReplace is Sendrecv with one buffer for both (MPI_Sendrecv_replace).
func (c *Comm) SendrecvReplace(b Buffer, dest, sendTag, source, recvTag int) (Status, error) {
	s, err := c.messageState().SendrecvReplace(b.data, dest, sendTag, source, recvTag)
	return Status(s), err
}

// Probe waits for a message that a receive would match and leaves it in the queue (MPI_Probe).
func (c *Comm) Probe(source, tag int) (Status, error) {
	_, s, err := c.messageState().Probe(source, tag, false)
	return Status(s), err
}

// Iprobe reports whether there is a message that a receive would match (MPI_Iprobe).
func (c *Comm) Iprobe(source, tag int) (Status, bool, error) {
	_, s, ok, err := c.messageState().Iprobe(source, tag, false)
	return Status(s), ok, err
}

// Message is a message that Mprobe has matched: no other receive matches it.
type Message struct{ message pt2pt.Message }

// core returns the message below the handle, at the same address: nil for nil.
func (m *Message) core() *pt2pt.Message { return (*pt2pt.Message)(unsafe.Pointer(m)) }

// messageOf returns the handle of a message.
func messageOf(m *pt2pt.Message) *Message { return (*Message)(unsafe.Pointer(m)) }

// Mprobe is Probe that removes the message from matching (MPI_Mprobe).
func (c *Comm) Mprobe(source, tag int) (*Message, Status, error) {
	m, s, err := c.messageState().Probe(source, tag, true)
	return messageOf(m), Status(s), err
}

// Improbe is Iprobe that removes the message from matching (MPI_Improbe).
func (c *Comm) Improbe(source, tag int) (*Message, Status, bool, error) {
	m, s, ok, err := c.messageState().Iprobe(source, tag, true)
	return messageOf(m), Status(s), ok, err
}

// Recv receives the message (MPI_Mrecv). It returns an ErrRequest if m is nil
// (MPI_MESSAGE_NULL) or was received before.
func (m *Message) Recv(b Buffer) (Status, error) {
	r, err := m.Irecv(b)
	if err != nil {
		return Status{}, err
	}
	return r.Wait()
}

// Irecv starts a Recv (MPI_Imrecv).
func (m *Message) Irecv(b Buffer) (*Request, error) {
	message := m.core()
	if message.IsNull() {
		r, err := nullMessages.IrecvNull()
		return handleOf(r), err
	}
	r, err := message.Irecv(b.data)
	return handleOf(r), err
}
