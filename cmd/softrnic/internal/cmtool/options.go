package cmtool

import (
	"io"
	"net/netip"
	"strconv"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
)

// Options are the originals' (see ucmatose(1) and udaddy(1)), and where to run. A message is a
// datagram of udaddy's, a connection a pair of its queue pairs.
type Options struct {
	Service     Service
	Server      string             // -s: "" is the server itself
	Bind        string             // -b: our own address
	Format      rdmacm.Format      // -f: of both addresses
	Connections int                // -c
	Count       int                // -C: messages each way on a connection
	Size        int                // -S: bytes of a message
	TOS         uint8              // -t: traffic class of our packets
	Port        int                // of RDMA-CM, ucmatose's -p; 0 is any free one, for a server
	PortSpace   cm.PortSpace       // ucmatose's -P: cm.TCP or cm.IB
	AckTimeout  rdmacm.TimeoutCode // ucmatose's -a: of our queue pairs

	rdmacm.DeviceSource

	Out       io.Writer              // receives the output of the original
	Log       io.Writer              // receives the error output of the original
	Listening func([]netip.AddrPort) // hears where the server waits; may be nil
	NoTerms   bool                   // a client sends no parameters, as the originals

	IdleTimeout time.Duration // how long nothing may happen
}

// Defaults returns the defaults of the original.
func Defaults(s Service) Options {
	o := Options{Service: s, Connections: 1, Count: 10, Size: 100, Port: 7471, PortSpace: cm.TCP, IdleTimeout: 30 * time.Second}
	if s == UD {
		o.Port, o.PortSpace = 7174, cm.UDP
	}
	return o
}

// Limits of the options.
const (
	maxConnections = 1 << 16
	maxMemory      = 1 << 30 // bytes of all messages of all connections
)

// check returns an error for an invalid option. Empty messages set the count to 0, as in the
// originals.
func (o *Options) check() error {
	if o.Size == 0 {
		o.Count = 0
	}
	port := "-p"
	if o.Service == UD { // whose -p is the port space
		port = "port"
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
	case o.Size < 0 || o.Size > maxMemory:
		return option.Errorf("-S", "messages of %d bytes cannot be; give 0 to %d", o.Size, maxMemory)
	case o.Service == RC && o.PortSpace != cm.TCP && o.PortSpace != cm.IB:
		return option.Errorf("-P", "%v is neither tcp nor ib", o.PortSpace)
	}
	if err := o.DeviceSource.Check(); err != nil {
		return err
	}
	if room := o.recvLen(); room > 0 && o.receives() > maxMemory/room/o.Connections {
		return option.Errorf("-C", "%d messages of %d bytes on %d connections do not fit into %d bytes of memory", o.Count, o.Size, o.Connections, maxMemory)
	}
	return nil
}

// sendsFirst reports whether this side sends first.
func (o *Options) sendsFirst() bool { return (o.Server == "") == (o.Service == RC) }

// name returns the program's name in the output of the original.
func (o *Options) name() string { return o.Service.name() }

// spareReceives returns the number of receives beyond the peer's messages, for datagrams of other
// senders.
func (o *Options) spareReceives() int {
	if o.Service == UD {
		return 16
	}
	return 0
}

// receives returns the number of receives of a connection.
func (o *Options) receives() int {
	if o.Count == 0 {
		return 0
	}
	return o.Count + o.spareReceives()
}

// headerLen returns the length of the header before the message in a receive buffer.
func (o *Options) headerLen() int {
	if o.Service == UD {
		return grhLen
	}
	return 0
}

// recvLen returns the length of a receive buffer.
func (o *Options) recvLen() int { return o.headerLen() + o.Size }

// params returns the parameters that both sides of a test must have alike.
func (o *Options) params() oob.Params {
	var t oob.Params
	t.Add("test", o.Service.test())
	t.Add("-c", strconv.Itoa(o.Connections))
	t.Add("-C", strconv.Itoa(o.Count))
	t.Add("-S", strconv.Itoa(o.Size))
	return t
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
