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
