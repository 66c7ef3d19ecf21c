package sdp

import (
	"cmp"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
)

// FlowControl is a flow control: see package flow.
type FlowControl = flow.Control

// The flow controls.
const (
	NIC    = flow.NIC    // the default
	RDMA   = flow.RDMA   // progress in calls only
	Credit = flow.Credit // as the standard has it, and every peer
)

// What the zero values of Options stand for.
const (
	DefaultBuffers     = 32
	DefaultBufferBytes = 64 << 10
	DefaultZeroCopy    = 1 << 20
	DefaultOfferTime   = time.Millisecond
	DefaultLinger      = time.Minute
	DefaultKeepAlive   = time.Minute
)

// initialBytes are used of each buffer until that is not enough: few pages, which a
// connection of short messages uses again and again.
const initialBytes = 128 << 10

// Options say how connections work. The zero value is good for most.
type Options struct {
	// FlowControl is the flow control that dialed connections ask for. Accepted
	// ones have what the peer asks for.
	FlowControl FlowControl

	// Buffers and BufferBytes are the N and S of the designs: so many buffers
	// of so many bytes on each side, 32 of 64 KiB by default. They take memory as
	// they are used.
	Buffers, BufferBytes int

	// MaxBufferBytes is up to which size a peer may have the buffers of a
	// connection with Credit enlarged: four times BufferBytes by default.
	MaxBufferBytes int

	// Window is the virtual window of the NIC design in bytes: the longest
	// message, and what must be free for a receive to be posted. By default
	// half of BufferBytes, 16 KiB at most, less 4, which makes full packets of
	// all of a message (see inPieces in package qp).
	Window int

	// ZeroCopy is the number of bytes from which a Write or Read moves them
	// straight between the two applications' memory. Negative means never: no
	// memory is offered, and what the peer offers is asked for in messages. The
	// default is 1 MiB, where both take as long between two processes of one
	// machine; adapters in hardware gain from 32 KiB on (see the experiment
	// sdp-zerocopy). ReadFrom, WriteTo and so io.Copy move 256 KiB at a time:
	// these go without a copy if ZeroCopy is not more than that.
	ZeroCopy int

	// OfferTime is how long a large Write waits for the peer to read before it
	// falls back to copying what the buffers take; 1 ms by default.
	OfferTime time.Duration

	// Linger is how long a closed connection goes on sending what was
	// written, and waits for the peer to close as well; a minute by default.
	Linger time.Duration

	// KeepAlive is the time without traffic after which the peer's adapter is
	// asked whether it is there; a minute by default, negative means never. If it is
	// below 10 s a peer that answers nothing is given up after 2 s instead of 7. See
	// Conn.SetKeepAlive for how soon one that is gone is noticed.
	KeepAlive time.Duration

	// Queue and Receives bound the messages that a connection has in the
	// adapter: sends (96 by default) and receives (256).
	Queue, Receives int
}

func (o Options) withDefaults() Options {
	o.Buffers = cmp.Or(o.Buffers, DefaultBuffers)
	o.BufferBytes = cmp.Or(o.BufferBytes, DefaultBufferBytes)
	o.MaxBufferBytes = cmp.Or(o.MaxBufferBytes, 4*o.BufferBytes)
	o.Window = cmp.Or(o.Window, max(min(o.BufferBytes/2, 16<<10)-4, 1))
	o.ZeroCopy = cmp.Or(o.ZeroCopy, DefaultZeroCopy)
	o.OfferTime = cmp.Or(o.OfferTime, DefaultOfferTime)
	o.Linger = cmp.Or(o.Linger, DefaultLinger)
	o.KeepAlive = cmp.Or(o.KeepAlive, DefaultKeepAlive)
	o.Queue = cmp.Or(o.Queue, 96)
	o.Receives = cmp.Or(o.Receives, 256)
	return o
}

// protocolConfig is what a connection is made of, but for its memory.
func (o *Options) protocolConfig() protocol.Config {
	return protocol.Config{
		FlowControl: o.FlowControl, Buffers: o.Buffers, BufferBytes: o.BufferBytes, InitialBytes: initialBytes, Window: o.Window,
		Queue: o.Queue, Receives: o.Receives, MaxAdverts: 1, MaxBufferBytes: o.MaxBufferBytes,
	}
}

// Validate says what is wrong with the options, as New does.
func (o Options) Validate() error {
	o = o.withDefaults()
	return o.validate()
}

func (o *Options) validate() error {
	c := o.protocolConfig()
	err := c.Validate()
	switch {
	case err != nil:
	case o.MaxBufferBytes < 0:
		err = fmt.Errorf("enlarged buffers of %d bytes: BufferBytes or less means that they stay as they are", o.MaxBufferBytes)
	case o.OfferTime < 0:
		err = fmt.Errorf("an offer time of %v: it is a time, and ZeroCopy -1 makes no offers", o.OfferTime)
	case o.Linger < 0:
		err = fmt.Errorf("a linger of %v: it is a time, and Conn.SetLinger(0) makes Close a reset", o.Linger)
	}
	if err != nil {
		return fmt.Errorf("sdp: options: %w", err)
	}
	return nil
}
