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

// Listener waits for clients.
type Listener struct{ tcp *net.TCPListener }

// Listen listens on a TCP port; 0 is any free one. The zero Addr is all
// addresses.
func Listen(at netip.Addr, port int) (*Listener, error) {
	l, err := net.ListenTCP("tcp", tcpAddr(at, port))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("TCP port %d is in use: another server waits there; stop it, or use another port on both sides: %w", port, err)
	case err != nil:
		return nil, err
	}
	return &Listener{l}, nil
}

// tcpAddr is an address for package net, for which the zero Addr is none.
func tcpAddr(at netip.Addr, port int) *net.TCPAddr {
	if !at.IsValid() {
		return &net.TCPAddr{Port: port}
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, uint16(port)))
}

// Port is the port it listens on.
func (l *Listener) Port() int { return l.tcp.Addr().(*net.TCPAddr).Port }

// Close stops listening.
func (l *Listener) Close() error { return l.tcp.Close() }

// Accept waits for a client, who has patience for each step.
func (l *Listener) Accept(ctx context.Context, patience time.Duration) (*Conn, error) {
	for {
		if err := l.tcp.SetDeadline(time.Time{}); err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { l.tcp.SetDeadline(time.Unix(1, 0)) })
		conn, err := l.tcp.Accept()
		stop()
		switch {
		case err == nil:
			return newConn(ctx, conn, patience), nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !errors.Is(err, os.ErrDeadlineExceeded): // of a context before this one
			return nil, err
		}
	}
}
