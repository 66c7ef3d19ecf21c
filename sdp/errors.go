package sdp

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/softrnic/softrnic/sdp/protocol"
)

// Errors of a connection that has ended before its time. They are in the
// *net.OpError that a call returns.
var (
	// ErrReset is in every such error: the peer or its host is gone, or one
	// end has closed with data on the way to it.
	ErrReset = protocol.ErrReset

	// ErrAborted says that the peer gave up sending (AbortConn).
	ErrAborted = protocol.ErrAborted

	// ErrProtocol says that the peer sent what cannot be; the text tells what.
	ErrProtocol = protocol.ErrProtocol
)

// opError is what a call on c returns.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: network, Source: c.local, Addr: c.remote, Err: err}
}

// network is the name of the network in addresses and errors.
const network = "sdp"

// Who writes to a connection that is closed for writing is told as with TCP.
var errShut = &os.SyscallError{Syscall: "write", Err: syscall.EPIPE}

// errRefused is what package net says when nobody listens.
var errRefused = &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}
