package rping

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// disconnectTimeout is how long the peer may take to confirm the end of a connection.
// Nothing depends on it.
const disconnectTimeout = 2 * time.Second

// Run is one run of the program, on either side. The end of ctx is the regular
// end of a persistent server and of a client that pings for ever.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	o.setDefaults()
	// Connections of a persistent server write at the same time.
	var mu sync.Mutex
	o.Out, o.Log = &lockedWriter{&mu, o.Out}, &lockedWriter{&mu, o.Log}
	if o.Client {
		return o.runClient(ctx)
	}
	return o.runServer(ctx)
}

// lockedWriter is a writer that many use.
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

// connectOptions is what both sides ask for.
func (o *Options) connectOptions() verbs.ConnectOptions {
	return verbs.ConnectOptions{RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 1, MaxDestRdAtomic: 1}
}

// runTest lets play use a connection until it ends, and ends it.
func (e *endpoint) runTest(ctx context.Context, m *cm.Manager, play func(context.Context) error) error {
	playing, alive, stop := rdmacm.StartTest(ctx, e.IdleTimeout, m, e.conn.RemoteAdapter())
	defer stop()
	e.alive = alive
	err := play(playing)
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), disconnectTimeout)
	defer cancel()
	_ = e.conn.Disconnect(bye) // a peer that does not confirm is gone, too
	name := "client"
	if !e.Client {
		name = "server"
	}
	if err == nil || errors.Is(err, cm.ErrDisconnected) {
		fmt.Fprintf(e.Log, "%s DISCONNECT EVENT...\n", name)
	}
	return err
}

// explainIdle makes the end of a wait in which nothing happened an error that says
// what was missing.
func (o *Options) explainIdle(err error, missing string) error {
	if errors.Is(err, watch.ErrIdle) {
		return fmt.Errorf("%w since %v: waiting for %s", err, o.IdleTimeout, missing)
	}
	return err
}
