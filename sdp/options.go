package sdp

import (
	"cmp"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Defaults of Options.
const (
	DefaultBuffers     = 32
	DefaultBufferBytes = 64 << 10
	DefaultZeroCopy    = 1 << 20
	DefaultOfferTime   = time.Millisecond
	DefaultLinger      = time.Minute
	DefaultKeepAlive   = time.Minute
)

// initialBytes is the initially used part of each buffer, 128 KiB: few pages, which connections
// with short messages reuse while they are cached.
const initialBytes = 128 << 10

// Options configure a Stack and its connections. The zero value has good defaults.
type Options struct {
	// Manager is the connection manager of the device, which has only one. By default the stack
	// creates it and closes it.
	Manager *cm.Manager

	// FlowControl is the flow control mode that dialed connections request. Accepted connections
	// use the mode that the peer requests.
	FlowControl FlowControl

	// Buffers and BufferBytes are the number and the size of the buffers on each side, by default
	// 32 of 64 KiB. Memory is allocated as it is used.
	Buffers, BufferBytes int

	// MaxBufferBytes is the largest buffer size that a peer may request with Credit. The default
	// is four times BufferBytes.
	MaxBufferBytes int

	// Window is the virtual window with NIC in bytes: the maximum message length, and the free
	// space that a posted receive requires. The default is half of BufferBytes, at most 16 KiB,
	// less 4, so that a message fills its packets completely.
	Window int

	// ZeroCopy is the minimum length in bytes of a Write or Read that transfers data directly
	// between the two applications' memory. A negative value disables zero-copy: no memory is
	// offered, and offers of the peer are refused. The default is 1 MiB, where both ways take the
	// same time between two processes of one machine; hardware adapters gain from 32 KiB on
	// (experiment sdp-zerocopy). ReadFrom, WriteTo and io.Copy transfer 256 KiB at a time,
	// without a copy if ZeroCopy is at most that.
	ZeroCopy int

	// OfferTime is the time that a large Write waits for the peer's Read before it falls back to
	// copying. The default is 1 ms.
	OfferTime time.Duration

	// Linger is the time that a closed connection continues to send written data and waits for
	// the peer to close. The default is a minute.
	Linger time.Duration

	// KeepAlive is the idle time after which a keepalive probes the peer's adapter. The default
	// is a minute; a negative value disables probes. With less than 10 s, a peer that does not
	// acknowledge is considered failed after 2 s instead of 7 s. See Conn.SetKeepAlive for the
	// detection time.
	KeepAlive time.Duration

	// Queue and Receives bound the work requests of a connection: sends (default 96) and receives
	// (default 256).
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

// protocolConfig returns the configuration of a connection without its memory.
func (o *Options) protocolConfig() protocol.Config {
	return protocol.Config{
		FlowControl: flow.Control(o.FlowControl), Buffers: o.Buffers, BufferBytes: o.BufferBytes, InitialBytes: initialBytes, Window: o.Window,
		Queue: o.Queue, Receives: o.Receives, MaxAdverts: 1, MaxBufferBytes: o.MaxBufferBytes,
	}
}

// validate returns an error that names the first field out of range, or nil. The defaults must be set.
func (o *Options) validate() error {
	c := o.protocolConfig()
	err := c.Validate()
	switch {
	case err != nil:
	case o.MaxBufferBytes < 0:
		err = fmt.Errorf("MaxBufferBytes: %d is negative; use BufferBytes or less to disable resizing", o.MaxBufferBytes)
	case o.OfferTime < 0:
		err = fmt.Errorf("OfferTime: %v is negative; use ZeroCopy -1 to disable offers", o.OfferTime)
	case o.Linger < 0:
		err = fmt.Errorf("Linger: %v is negative; use Conn.SetLinger(0) to reset on Close", o.Linger)
	}
	if err != nil {
		return fmt.Errorf("sdp: %w: Options.%w", verbs.ErrInvalid, err)
	}
	return nil
}

// A FlowControl is a flow control mode. The zero value is the default, NIC.
type FlowControl uint8

// Flow control modes.
const (
	NIC    FlowControl = iota // by the adapters; the default
	RDMA                      // by the sender; progress in calls only
	Credit                    // by credits, as in the standard; every peer supports it
)

// The modes have the same numbers in package flow, so that a conversion suffices.
var _ = [1]struct{}{}[NIC-FlowControl(flow.NIC)|RDMA-FlowControl(flow.RDMA)|Credit-FlowControl(flow.Credit)]

// String returns the name used in command lines: "nic", "rdma" or "credit".
func (f FlowControl) String() string { return flow.Control(f).String() }

// MarshalText implements encoding.TextMarshaler with the name of the mode.
func (f FlowControl) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, the inverse of MarshalText.
func (f *FlowControl) UnmarshalText(text []byte) error {
	mode, err := flow.ParseControl(string(text))
	if err != nil {
		return fmt.Errorf("sdp: %w: %w", verbs.ErrInvalid, err)
	}
	*f = FlowControl(mode)
	return nil
}

// newKeepAlive returns the setting for a value of Options.KeepAlive.
func newKeepAlive(d time.Duration) keepAlive {
	if d < 0 {
		return keepAlive{false, DefaultKeepAlive}
	}
	return keepAlive{true, d}
}
