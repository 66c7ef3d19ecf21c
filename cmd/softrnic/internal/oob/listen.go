package oob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
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
