package oob

import (
	"context"
	"io"
	"sync"
)

// Client is a connection with a client of a server that serves one.
type Client interface {
	io.Closer
	Outlive(ctx context.Context) // its context is ctx from now on
	PeerName() string
}

// pending is how many clients may be about to say hello at a time. More wait
// in the backlog.
const pending = 64

// First returns the first client that hello accepts, and what hello returned.
// Many say hello at once. Whom hello refuses, and who has not finished when
// another is taken, is closed and told to dropped. Clients come from accept,
// with the context that it gets; the context of the one that is taken is ctx.
func First[C Client, T any](ctx context.Context, accept func(context.Context) (C, error), hello func(C) (T, error), dropped func(error)) (C, T, error) {
	f := first[C, T]{accept: accept, hello: hello, taken: make(chan greeted[C, T]), refused: make(chan error)}
	return f.run(ctx, dropped)
}

type first[C Client, T any] struct {
	accept  func(context.Context) (C, error)
	hello   func(C) (T, error)
	taken   chan greeted[C, T]
	refused chan error
	clients sync.WaitGroup
}

type greeted[C Client, T any] struct {
	client C
	said   T
}

func (f *first[C, T]) run(ctx context.Context, dropped func(error)) (C, T, error) {
	greeting, stop := context.WithCancelCause(ctx)
	failed := make(chan error, 1)
	f.clients.Go(func() { failed <- f.serve(greeting) })
	defer f.end(stop, dropped)
	for {
		select {
		case g := <-f.taken:
			g.client.Outlive(ctx)
			return g.client, g.said, nil
		case err := <-f.refused:
			dropped(err)
		case err := <-failed:
			var client C
			var none T
			return client, none, err
		}
	}
}

// end sends away who is left, and tells.
func (f *first[C, T]) end(stop context.CancelCauseFunc, dropped func(error)) {
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
			g.client.Close()
			dropped(&PeerError{g.client.PeerName(), "say hello", ErrLate, ""})
		case <-all:
			return
		}
	}
}

// serve takes clients until ctx ends.
func (f *first[C, T]) serve(ctx context.Context) error {
	room := make(chan struct{}, pending)
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		client, err := f.accept(ctx)
		if err != nil {
			return err
		}
		f.clients.Go(func() {
			f.greet(client)
			<-room
		})
	}
}

// greet hears one client.
func (f *first[C, T]) greet(client C) {
	said, err := f.hello(client)
	if err != nil {
		client.Close()
		f.refused <- err
		return
	}
	f.taken <- greeted[C, T]{client, said}
}
