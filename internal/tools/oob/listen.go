package oob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// pending is how many clients may be about to say hello at a time. More wait
// in the system's backlog.
const pending = 64

// Listener waits for clients.
type Listener struct{ tcp *net.TCPListener }

// Listen listens on a TCP port of all addresses; 0 is any free one.
func Listen(port int) (*Listener, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{Port: port})
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("TCP port %d is in use: another server waits there; stop it, or use another port on both sides: %w", port, err)
	case err != nil:
		return nil, err
	}
	return &Listener{l}, nil
}

// Port is the port it listens on.
func (l *Listener) Port() int { return l.tcp.Addr().(*net.TCPAddr).Port }

// Close stops listening.
func (l *Listener) Close() error { return l.tcp.Close() }

// First returns the first client that hello accepts, and what hello returned.
// Many say hello at once, each within patience. Whom hello refuses, and who has
// not finished when another is taken, is closed and told to dropped.
func First[T any](ctx context.Context, l *Listener, patience time.Duration, hello func(*Conn) (T, error), dropped func(error)) (*Conn, T, error) {
	f := first[T]{l: l, patience: patience, hello: hello, taken: make(chan greeted[T]), refused: make(chan error)}
	return f.run(ctx, dropped)
}

type first[T any] struct {
	l        *Listener
	patience time.Duration
	hello    func(*Conn) (T, error)
	taken    chan greeted[T]
	refused  chan error
	clients  sync.WaitGroup
}

type greeted[T any] struct {
	conn *Conn
	said T
}

func (f *first[T]) run(ctx context.Context, dropped func(error)) (*Conn, T, error) {
	greeting, stop := context.WithCancelCause(ctx)
	failed := make(chan error, 1)
	f.clients.Go(func() { failed <- f.accept(greeting) })
	end := func() { // ends the rest, and hears why
		stop(ErrLate)
		all := make(chan struct{})
		go func() {
			f.clients.Wait()
			close(all)
		}()
		for {
			select {
			case err := <-f.refused:
				dropped(err)
			case g := <-f.taken:
				g.conn.Close()
				dropped(&PeerError{g.conn.peer.String(), "say hello", ErrLate, ""})
			case <-all:
				return
			}
		}
	}
	defer end()
	for {
		select {
		case g := <-f.taken:
			g.conn.watch(ctx)
			return g.conn, g.said, nil
		case err := <-f.refused:
			dropped(err)
		case err := <-failed:
			var none T
			return nil, none, err
		}
	}
}

// accept takes clients until ctx ends.
func (f *first[T]) accept(ctx context.Context) error {
	if err := f.l.tcp.SetDeadline(time.Time{}); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { f.l.tcp.SetDeadline(time.Unix(1, 0)) })()
	room := make(chan struct{}, pending)
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		conn, err := f.l.tcp.Accept()
		if ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		f.clients.Go(func() {
			f.greet(newConn(ctx, conn, f.patience))
			<-room
		})
	}
}

// greet hears one client.
func (f *first[T]) greet(c *Conn) {
	said, err := f.hello(c)
	if err != nil {
		c.Close()
		f.refused <- err
		return
	}
	f.taken <- greeted[T]{c, said}
}
