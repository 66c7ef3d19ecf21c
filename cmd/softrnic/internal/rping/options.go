package rping

import (
	"io"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
)

// Options are the options of the original (see rping(1)), and the device and streams of the run.
type Options struct {
	Client     bool   // -c; else the server, -s
	Addr       string // -a: the server's address, or the one to listen at; "" is every address
	Source     string // -I: the client's address; "" is the source address of the route
	Port       int    // -p: of RDMA-CM; 0 is any free one, for a server
	Verbose    bool   // -v: print the data
	Validate   bool   // -V: compare the data
	Count      int    // -C: pings of a client, 0 without end; a server expects no more
	Size       int    // -S: bytes of a ping, for a server the maximum
	Persistent bool   // -P: a server serves any number of clients, at the same time
	Debug      bool   // -d: write debug messages

	rdmacm.DeviceSource

	Out       io.Writer              // receives the data and debug messages
	Log       io.Writer              // receives the error output of the original
	Dropped   func(error)            // is called for failed clients of a persistent server; may be nil
	Listening func([]netip.AddrPort) // is called with the server's addresses; may be nil

	IdleTimeout time.Duration // bounds each step of the peer
}

// Defaults returns the defaults of the original.
func Defaults() Options {
	return Options{Port: 7174, Size: 64, IdleTimeout: 30 * time.Second}
}

// Limits of the size in the original.
const (
	MinSize = 23
	MaxSize = 1<<16 - 1
)

// maxClients is the maximum number of concurrent clients of a persistent server.
const maxClients = 1024

// validate returns an error for an invalid option.
func (o *Options) validate() error {
	switch {
	case o.Port < 0 || o.Port > 65535:
		return option.Errorf("-p", "port %d: want 1 to 65535", o.Port)
	case o.Port == 0 && o.Client:
		return option.Errorf("-p", "a client needs the server's port")
	case o.Client && o.Addr == "":
		return option.Errorf("-a", "a client needs the server's address")
	case o.Client && o.Persistent:
		return option.Errorf("-P", "only a server (-s) is persistent")
	case !o.Client && o.Source != "":
		return option.Errorf("-I", "is a client's (-c); a server binds to -a")
	case o.Size < MinSize || o.Size > MaxSize:
		return option.Errorf("-S", "invalid size %d (valid range is %d to %d)", o.Size, MinSize, MaxSize)
	case o.Count < 0:
		return option.Errorf("-C", "invalid count %d", o.Count)
	}
	return o.DeviceSource.Check()
}

// setDefaults replaces nil writers and functions.
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
