package cmtool

import (
	"io"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
)

// Options are those that both originals have, and where to run. A message is a
// datagram of udaddy's, a connection a pair of its queue pairs.
type Options struct {
	Server      string        // -s: "" is the server itself
	Bind        string        // -b: our own address
	Format      rdmacm.Format // -f: of both addresses
	Connections int           // -c
	Count       int           // -C: messages each way on a connection
	Size        int           // -S: bytes of a message
	TOS         uint8         // -t: traffic class of our packets
	Port        int           // of RDMA-CM; 0 is any free one, for a server

	rdmacm.DeviceSource

	Out       io.Writer              // receives the output of the original
	Log       io.Writer              // receives the error output of the original
	Listening func([]netip.AddrPort) // hears where the server waits; may be nil
	NoTerms   bool                   // a client sends no parameters, as the originals

	IdleTimeout time.Duration // how long nothing may happen
}

// Defaults returns the defaults of the originals, which differ in the port.
func Defaults(port int) Options {
	return Options{Connections: 1, Count: 10, Size: 100, Port: port, IdleTimeout: 30 * time.Second}
}

// Limits of the options.
const (
	maxConnections = 1 << 16
	MaxMemory      = 1 << 30 // bytes of all messages of all connections
)

// Check returns an error for an invalid option. Empty messages set the count to 0, as in the
// originals. The tool checks the size; port is the name of its port option.
func (o *Options) Check(port string) error {
	if o.Size == 0 {
		o.Count = 0
	}
	switch {
	case o.Port < 0 || o.Port > 65535:
		return option.Errorf(port, "port %d: want 1 to 65535", o.Port)
	case o.Port == 0 && o.Server != "":
		return option.Errorf(port, "a client needs the server's port")
	case o.Connections < 1 || o.Connections > maxConnections:
		return option.Errorf("-c", "%d connections: want 1 to %d", o.Connections, maxConnections)
	case o.Count < 0:
		return option.Errorf("-C", "%d messages: want 0 or more", o.Count)
	}
	return o.DeviceSource.Check()
}

// Fits returns an error if the receives of room bytes of all connections exceed MaxMemory.
func (o *Options) Fits(receives, room int) error {
	if room > 0 && receives > MaxMemory/room/o.Connections {
		return option.Errorf("-C", "%d messages of %d bytes on %d connections do not fit into %d bytes of memory", o.Count, o.Size, o.Connections, MaxMemory)
	}
	return nil
}

// complete replaces nil writers and functions.
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
