package ucmatose

import (
	"io"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/tools/rdmacm"
)

// Options are the original's (see ucmatose(1)), and where to run.
type Options struct {
	Server      string             // -s: "" is the server itself
	Bind        string             // -b: our own address
	Format      rdmacm.Format      // -f: of both addresses
	PortSpace   cm.PortSpace       // -P: cm.TCP or cm.IB
	Connections int                // -c
	Count       int                // -C: messages each way on a connection
	Size        int                // -S: bytes of a message
	TOS         uint8              // -t: traffic class of our packets
	Port        int                // -p: of RDMA-CM; 0 is any free one, for a server
	AckTimeout  rdmacm.TimeoutCode // -a: of our queue pairs

	rdmacm.Place

	Out       io.Writer              // gets what the original writes
	Log       io.Writer              // gets what it writes to stderr
	Listening func([]netip.AddrPort) // hears where the server waits; may be nil

	Idle time.Duration // how long nothing may happen
}

// Defaults are those of the original.
func Defaults() Options {
	return Options{PortSpace: cm.TCP, Connections: 1, Count: 10, Size: 100, Port: 7471, Idle: 30 * time.Second}
}

// Limits of the options.
const (
	maxConnections = 1 << 16
	maxMemory      = 1 << 30 // bytes of all messages of all connections
)

// check refuses what cannot be, and makes no messages of messages without
// bytes, as the original does.
func (o *Options) check() error {
	if o.Size == 0 {
		o.Count = 0
	}
	switch {
	case o.Port < 0 || o.Port > 65535:
		return rdmacm.Refuse("-p", "%d is no port; give 1 to 65535", o.Port)
	case o.Port == 0 && o.Server != "":
		return rdmacm.Refuse("-p", "a client needs the server's port")
	case o.PortSpace != cm.TCP && o.PortSpace != cm.IB:
		return rdmacm.Refuse("-P", "%v is neither tcp nor ib", o.PortSpace)
	case o.Connections < 1 || o.Connections > maxConnections:
		return rdmacm.Refuse("-c", "%d connections cannot be; give 1 to %d", o.Connections, maxConnections)
	case o.Count < 0:
		return rdmacm.Refuse("-C", "%d messages cannot be", o.Count)
	case o.Size < 0 || o.Size > maxMemory:
		return rdmacm.Refuse("-S", "messages of %d bytes cannot be; give 0 to %d", o.Size, maxMemory)
	case o.Size > 0 && o.Count > maxMemory/o.Size/o.Connections:
		return rdmacm.Refuse("-C", "%d messages of %d bytes on %d connections do not fit into %d bytes of memory", o.Count, o.Size, o.Connections, maxMemory)
	}
	return o.Place.Check()
}

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
