package rping

import (
	"io"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
)

// Options are the original's (see rping(1)), and where to run.
type Options struct {
	Client     bool   // -c; else the server, -s
	Addr       string // -a: the server's, or where the server waits; "" is everywhere
	Source     string // -I: the client's own, "" is the one that leads to the server
	Port       int    // -p: of RDMA-CM; 0 is any free one, for a server
	Verbose    bool   // -v: print the data
	Validate   bool   // -V: compare the data
	Count      int    // -C: pings of a client, 0 for ever; a server takes it that there are no more
	Size       int    // -S: bytes of a ping, and the most that a server takes
	Persistent bool   // -P: a server serves any number of clients, at the same time
	Debug      bool   // -d: say what happens

	rdmacm.DeviceSource

	Out       io.Writer              // gets the data and what Debug says
	Log       io.Writer              // gets what the original writes to stderr
	Dropped   func(error)            // hears of a persistent server's clients that failed; may be nil
	Listening func([]netip.AddrPort) // hears where the server waits; may be nil

	IdleTimeout time.Duration // how long a peer may take for its next step
}

// Defaults are those of the original.
func Defaults() Options {
	return Options{Port: 7174, Size: 64, IdleTimeout: 30 * time.Second}
}

// Limits of the size: what the original takes.
const (
	MinSize = 23
	MaxSize = 1<<16 - 1
)

// maxClients is how many a persistent server serves at a time.
const maxClients = 1024

// validate refuses what cannot be.
func (o *Options) validate() error {
	switch {
	case o.Port < 0 || o.Port > 65535:
		return rdmacm.Refuse("-p", "port %d: want 1 to 65535", o.Port)
	case o.Port == 0 && o.Client:
		return rdmacm.Refuse("-p", "a client needs the server's port")
	case o.Client && o.Addr == "":
		return rdmacm.Refuse("-a", "a client needs the server's address")
	case o.Client && o.Persistent:
		return rdmacm.Refuse("-P", "only a server (-s) is persistent")
	case !o.Client && o.Source != "":
		return rdmacm.Refuse("-I", "is a client's (-c); a server binds to -a")
	case o.Size < MinSize || o.Size > MaxSize:
		return rdmacm.Refuse("-S", "invalid size %d (valid range is %d to %d)", o.Size, MinSize, MaxSize)
	case o.Count < 0:
		return rdmacm.Refuse("-C", "invalid count %d", o.Count)
	}
	return o.DeviceSource.Check()
}

// setDefaults gives everything that hears of something an ear.
func (o *Options) setDefaults() {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Dropped == nil {
		o.Dropped = func(error) {}
	}
	if o.Listening == nil {
		o.Listening = func([]netip.AddrPort) {}
	}
}
