package rping

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
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

// disconnectTimeout is the time for the peer to confirm a disconnect.
const disconnectTimeout = 2 * time.Second

// Run runs the program on either side. The end of ctx is the regular end of a persistent server
// and of an endless client.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	o.setDefaults()
	// Connections of a persistent server write concurrently.
	var mu sync.Mutex
	o.Out, o.Log = &lockedWriter{&mu, o.Out}, &lockedWriter{&mu, o.Log}
	if o.Client {
		return o.runClient(ctx)
	}
	return o.runServer(ctx)
}

// A lockedWriter is a writer for concurrent use.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (o *Options) debugf(format string, args ...any) {
	if o.Debug {
		fmt.Fprintf(o.Out, format, args...)
	}
}

// connectOptions returns the attributes of a connection.
func (o *Options) connectOptions() verbs.ConnectOptions {
	return verbs.ConnectOptions{Retries: 7, RNRRetries: verbs.RetryForever, MaxRdAtomic: 1, MaxDestRdAtomic: 1}
}

// runTest runs play on the connection and disconnects.
func (e *endpoint) runTest(ctx context.Context, m *cm.Manager, play func(context.Context) error) error {
	playing, alive, stop := rdmacm.StartTest(ctx, e.IdleTimeout, m, e.conn.RemoteAdapter())
	defer stop()
	e.alive = alive
	err := play(playing)
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), disconnectTimeout)
	defer cancel()
	_ = e.conn.Disconnect(bye, nil) // a peer that does not confirm has ended as well
	name := "client"
	if !e.Client {
		name = "server"
	}
	if err == nil || errors.Is(err, cm.ErrDisconnected) {
		fmt.Fprintf(e.Log, "%s DISCONNECT EVENT...\n", name)
	}
	return err
}

// explainIdle adds the missing step to an error that wraps watch.ErrIdle.
func (o *Options) explainIdle(err error, missing string) error {
	if errors.Is(err, watch.ErrIdle) {
		return fmt.Errorf("%w since %v: waiting for %s", err, o.IdleTimeout, missing)
	}
	return err
}
