package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"unsafe"

	"github.com/softrnic/softrnic/acp/internal/plain"
)

// Chan is one end of a channel of values, with blocking methods as those of Go's channels. Values are sent as
// they are in memory, so T must not contain pointers, slices, strings, maps, channels, functions or
// interfaces. The methods may be called concurrently.
type Chan[T any] struct {
	ch *Channel

	closing sync.Mutex
	free    *Request // of the first Close; guarded by closing
}

// NewChan creates this rank's end of a channel of values: see Process.NewChannel.
func NewChan[T any](p *Process, sender, receiver int, o ChannelOptions) (*Chan[T], error) {
	if t := reflect.TypeFor[T](); !plain.IsPlain(t) {
		return nil, p.newError("create channel", fmt.Sprintf("of %v", t), fmt.Errorf("%w: type contains references", ErrOptions))
	}
	ch, err := p.NewChannel(sender, receiver, o)
	if err != nil {
		return nil, err
	}
	return &Chan[T]{ch: ch}, nil
}

// Channel returns the underlying channel of bytes.
func (c *Chan[T]) Channel() *Channel { return c.bytesChannel() }

// Send sends a value. It returns when the value is in a slot, if one is free. If ctx ends first, the value is
// still sent.
func (c *Chan[T]) Send(ctx context.Context, v T) error {
	_, err := c.bytesChannel().Send(plain.BytesOf(unsafe.Slice(&v, 1))).Wait(ctx)
	return err
}

// SendSlice sends values as one message, for a RecvSlice. If ctx ends first, the values are still sent and
// must not be changed until a later Send, SendSlice or Close has returned without an error.
func (c *Chan[T]) SendSlice(ctx context.Context, v []T) error {
	_, err := c.bytesChannel().Send(plain.BytesOf(v)).Wait(ctx)
	return err
}

// Recv receives the next value. It returns ErrEnd when the sender has closed its end and all values have been
// received. If ctx ends first, no value is consumed.
func (c *Chan[T]) Recv(ctx context.Context) (v T, err error) {
	n, err := c.recvMessage(ctx, plain.BytesOf(unsafe.Slice(&v, 1)))
	if size := int(unsafe.Sizeof(v)); err == nil && n != size {
		err = c.ch.p.newError("receive", "on "+c.ch.String(), fmt.Errorf("%w: message of %d bytes, want a %T of %d", ErrLength, n, v, size))
	}
	return v, err
}

// RecvSlice receives the next message into v. It returns the number of values stored, which is the smaller of
// the message's length and len(v).
func (c *Chan[T]) RecvSlice(ctx context.Context, v []T) (n int, err error) {
	n, err = c.recvMessage(ctx, plain.BytesOf(v))
	var one T
	if size := int(unsafe.Sizeof(one)); size > 0 {
		n /= size
	}
	return n, err
}

// recvMessage receives a message, or returns when ctx ends before any part of a message has arrived.
func (c *Chan[T]) recvMessage(ctx context.Context, buf []byte) (int, error) {
	r := c.bytesChannel().pushRequest(recvKind, buf, false)
	n, err := r.Wait(ctx)
	if err == nil || r == nil || ctx == nil || ctx.Err() == nil || r.cancelRecv() {
		return n, err
	}
	return r.Wait(context.WithoutCancel(ctx)) // complete or partly received
}

// All returns an iterator over the values until the sender closes its end. An error ends the iteration.
//
//	for v, err := range c.All(ctx) {
func (c *Chan[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, err := c.Recv(ctx)
			if errors.Is(err, ErrEnd) || !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Close frees this end: see Channel.Free. Both ranks must call it. It is idempotent: a later call waits for
// the first one and returns the same error.
func (c *Chan[T]) Close(ctx context.Context) error {
	_, err := c.freeEnd().Wait(ctx)
	return err
}

// freeEnd returns the request that frees this end, nil for a null handle.
func (c *Chan[T]) freeEnd() *Request {
	ch := c.bytesChannel()
	if ch.isNull() {
		return nil
	}
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.free == nil {
		c.free = ch.Free()
	}
	return c.free
}
