package udaddy

import (
	"io"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/tools/rdmacm"
)

// Options are the original's (see udaddy(1)), and where to run.
type Options struct {
	Server      string        // -s: "" is the server itself
	Bind        string        // -b: our own address
	Format      rdmacm.Format // -f: of both addresses
	Connections int           // -c: pairs of queue pairs
	Count       int           // -C: datagrams each way between two
	Size        int           // -S: bytes of a datagram
	TOS         uint8         // -t: traffic class of our packets

	Port int // of RDMA-CM, which the original has no option for; 0 is any free one, for a server

	rdmacm.Place

	Out       io.Writer              // gets what the original writes
	Log       io.Writer              // gets what it writes to stderr
	Listening func([]netip.AddrPort) // hears where the server waits; may be nil

	Idle time.Duration // how long nothing may happen
}

// Defaults are those of the original.
func Defaults() Options {
	return Options{Connections: 1, Count: 10, Size: 100, Port: 7174, Idle: 30 * time.Second}
}

// Limits of the options.
const (
	maxConnections = 1 << 16
	maxMemory      = 1 << 30 // bytes of all datagrams of all connections
)

// check refuses what cannot be, and makes no messages of messages without
// bytes, as the original does. How long a datagram may be, the device says.
func (o *Options) check() error {
	if o.Size == 0 {
		o.Count = 0
	}
	switch {
	case o.Port < 0 || o.Port > 65535:
		return rdmacm.Refuse("port", "%d is no port; give 1 to 65535", o.Port)
	case o.Port == 0 && o.Server != "":
		return rdmacm.Refuse("port", "a client needs the server's port")
	case o.Connections < 1 || o.Connections > maxConnections:
		return rdmacm.Refuse("-c", "%d connections cannot be; give 1 to %d", o.Connections, maxConnections)
	case o.Count < 0:
		return rdmacm.Refuse("-C", "%d messages cannot be", o.Count)
	case o.Size < 0:
		return rdmacm.Refuse("-S", "messages of %d bytes cannot be", o.Size)
	case o.receives() > maxMemory/(o.Size+grhLen)/o.Connections:
		return rdmacm.Refuse("-C", "%d messages of %d bytes on %d connections do not fit into %d bytes of memory", o.Count, o.Size, o.Connections, maxMemory)
	}
	return o.Place.Check()
}

// spare is how many receives there are beside those for the peer's datagrams,
// for strangers to use up.
const spare = 16

// receives is how many receives there are.
func (o *Options) receives() int {
	if o.Count == 0 {
		return 0
	}
	return o.Count + spare
}

// grhLen is how much room a receive has in front of a datagram.
const grhLen = 40

// complete gives everything that hears of something an ear.
func (o *Options) complete() {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Listening == nil {
		o.Listening = func([]netip.AddrPort) {}
	}
}
