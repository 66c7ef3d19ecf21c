package oob

import (
	"context"
	"io"
	"sync"
)

// Client is a connection with a client of a server that serves one.
type Client interface {
	io.Closer
	SetContext(ctx context.Context) // its context is ctx from now on
	PeerName() string
}

// maxPendingHellos is how many clients may be about to say hello at a time. More wait
// in the backlog.
const maxPendingHellos = 64

// AcceptFirst returns the first client that hello accepts, and what hello returned.
// Many say hello at once. Whom hello refuses, and who has not finished when
// another is taken, is closed and told to dropped. Clients come from accept,
// with the context that it gets; the context of the one that is taken is ctx.
func AcceptFirst[C Client, T any](ctx context.Context, accept func(context.Context) (C, error), hello func(C) (T, error), dropped func(error)) (C, T, error) {
	f := firstAcceptor[C, T]{accept: accept, hello: hello, accepted: make(chan helloResult[C, T]), rejected: make(chan error)}
	return f.run(ctx, dropped)
}

type firstAcceptor[C Client, T any] struct {
	accept   func(context.Context) (C, error)
	hello    func(C) (T, error)
	accepted chan helloResult[C, T]
	rejected chan error
	clients  sync.WaitGroup
}

type helloResult[C Client, T any] struct {
	client C
	hello  T
}

func (f *firstAcceptor[C, T]) run(ctx context.Context, dropped func(error)) (C, T, error) {
	greeting, stop := context.WithCancelCause(ctx)
	failed := make(chan error, 1)
	f.clients.Go(func() { failed <- f.acceptClients(greeting) })
	defer f.dropOthers(stop, dropped)
	for {
		select {
		case g := <-f.accepted:
			g.client.SetContext(ctx)
			return g.client, g.hello, nil
		case err := <-f.rejected:
			dropped(err)
		case err := <-failed:
			var client C
			var none T
			return client, none, err
		}
	}
}

// dropOthers sends away who is left, and tells.
func (f *firstAcceptor[C, T]) dropOthers(stop context.CancelCauseFunc, dropped func(error)) {
	stop(ErrNotFirst)
	all := make(chan struct{})
	go func() {
		f.clients.Wait()
		close(all)
	}()
	for {
		select {
		case err := <-f.rejected:
			dropped(err)
		case g := <-f.accepted:
			g.client.Close()
			dropped(&PeerError{g.client.PeerName(), "say hello", ErrNotFirst, ""})
		case <-all:
			return
		}
	}
}

// acceptClients takes clients until ctx ends.
func (f *firstAcceptor[C, T]) acceptClients(ctx context.Context) error {
	room := make(chan struct{}, maxPendingHellos)
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
			f.readHello(client)
			<-room
		})
	}
}

// readHello hears one client.
func (f *firstAcceptor[C, T]) readHello(client C) {
	said, err := f.hello(client)
	if err != nil {
		client.Close()
		f.rejected <- err
		return
	}
	f.accepted <- helloResult[C, T]{client, said}
}
