package oob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// A Listener accepts clients.
type Listener struct{ tcp *net.TCPListener }

// Listen listens on a TCP port; 0 is any free one. The zero Addr stands for all addresses.
func Listen(at netip.Addr, port int) (*Listener, error) {
	l, err := net.ListenTCP("tcp", tcpAddr(at, port))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("TCP port %d is in use by another server; stop it, or use another port on both sides: %w", port, err)
	case err != nil:
		return nil, err
	}
	return &Listener{l}, nil
}

// tcpAddr returns an address for package net; the zero Addr becomes a nil IP.
func tcpAddr(at netip.Addr, port int) *net.TCPAddr {
	if !at.IsValid() {
		return &net.TCPAddr{Port: port}
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, uint16(port)))
}

// Port returns the port of the listener.
func (l *Listener) Port() int { return l.tcp.Addr().(*net.TCPAddr).Port }

// Close stops listening.
func (l *Listener) Close() error { return l.tcp.Close() }

// Accept waits for a client. timeout bounds each of its reads and writes.
func (l *Listener) Accept(ctx context.Context, timeout time.Duration) (*Conn, error) {
	for {
		if err := l.tcp.SetDeadline(time.Time{}); err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { l.tcp.SetDeadline(time.Unix(1, 0)) })
		conn, err := l.tcp.Accept()
		stop()
		switch {
		case err == nil:
			return newConn(ctx, conn, timeout), nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !errors.Is(err, os.ErrDeadlineExceeded): // of a context before this one
			return nil, err
		}
	}
}

// A Client is a connection that AcceptFirst has accepted from the listener.
type Client interface {
	io.Closer
	SetContext(ctx context.Context) // replaces its context
	PeerName() string
}

// maxPendingHellos is the maximum number of clients whose hello is awaited at a time. More clients
// wait in the listener's backlog.
const maxPendingHellos = 64

// AcceptFirst returns the first client whose hello succeeds, and the result of hello. It runs
// hello for many clients concurrently. Clients that hello rejects, and those still in hello at the
// return, are closed and reported to dropped. Clients come from accept, which gets a context that
// ends with AcceptFirst; the context of the returned client is ctx.
func AcceptFirst[C Client, T any](ctx context.Context, accept func(context.Context) (C, error), hello func(C) (T, error), dropped func(error)) (C, T, error) {
	f := firstAcceptor[C, T]{accept: accept, hello: hello, accepted: make(chan helloResult[C, T]), rejected: make(chan error)}
	return f.run(ctx, dropped)
}

// A firstAcceptor is one call of AcceptFirst.
type firstAcceptor[C Client, T any] struct {
	accept   func(context.Context) (C, error)
	hello    func(C) (T, error)
	accepted chan helloResult[C, T]
	rejected chan error
	clients  sync.WaitGroup
}

// A helloResult is a client with the result of its hello.
type helloResult[C Client, T any] struct {
	client C
	hello  T
}

func (f *firstAcceptor[C, T]) run(ctx context.Context, dropped func(error)) (C, T, error) {
	pending, stop := context.WithCancelCause(ctx)
	failed := make(chan error, 1)
	f.clients.Go(func() { failed <- f.acceptClients(pending) })
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

// dropOthers cancels the remaining clients, waits for them and reports them to dropped.
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

// acceptClients accepts clients until ctx ends.
func (f *firstAcceptor[C, T]) acceptClients(ctx context.Context) error {
	slots := make(chan struct{}, maxPendingHellos)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		client, err := f.accept(ctx)
		if err != nil {
			return err
		}
		f.clients.Go(func() {
			f.readHello(client)
			<-slots
		})
	}
}

// readHello runs hello for one client.
func (f *firstAcceptor[C, T]) readHello(client C) {
	result, err := f.hello(client)
	if err != nil {
		client.Close()
		f.rejected <- err
		return
	}
	f.accepted <- helloResult[C, T]{client, result}
}
