package broker

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Requests, each followed by protocolVersion.
const (
	requestSockets = 'S' // the reply has the sockets and the table
	requestWatch   = 'W' // no reply; the connection lasts as long as the process
)

// protocolVersion changes with the requests, the table and the program.
const protocolVersion = 2

const (
	requestTimeout = 5 * time.Second        // for a request, after which a connection is closed
	replyTimeout   = 300 * time.Millisecond // for a reply, after which another process is asked
)

// serveName accepts connections at a name until the listener is closed. ended is called, if it is
// not nil, with a process whose connection has ended without a request for the sockets: it watches,
// or was killed before it could say so.
func (g *group) serveName(l *net.UnixListener, ended func(pid int)) {
	g.running.Go(func() {
		for {
			c, err := l.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // out of descriptors
				if !g.pause(10 * time.Millisecond) {
					return
				}
				continue
			}
			g.running.Go(func() { g.handleConn(c, ended) })
		}
	})
}

// handleConn serves one connection.
func (g *group) handleConn(c *net.UnixConn, ended func(pid int)) {
	if !g.trackConn(c) {
		return
	}
	defer g.untrackConn(c)
	pid, err := checkPeer(c)
	if err != nil {
		return
	}
	var request [2]byte
	_ = c.SetReadDeadline(time.Now().Add(requestTimeout)) // fails if closed, like Read
	n, err := c.Read(request[:])
	switch arrived := err == nil && n == len(request); {
	case arrived && request[0] == requestSockets:
		g.sendSockets(c)
		return
	case arrived && request[0] == requestWatch:
		_ = c.SetReadDeadline(time.Time{})
		_, _ = c.Read(request[:]) // until the end of the process
	}
	if ended != nil && !g.isClosed() {
		ended(pid)
	}
}

// sendSockets sends the sockets and the table. The system limits the descriptors on their way
// (ETOOMANYREFS), so that a send may have to be repeated.
func (g *group) sendSockets(c *net.UnixConn) {
	rights := unix.UnixRights(append(g.sockets[:], g.table.fd)...)
	for range 50 {
		_, _, err := c.WriteMsgUnix([]byte{protocolVersion}, rights, nil)
		if !errors.Is(err, syscall.ETOOMANYREFS) || !g.pause(10*time.Millisecond) {
			return
		}
	}
}

// requestFrom requests the sockets and the table from the holder of a name.
func (g *group) requestFrom(slot int) (fds []int, err error) {
	c, err := g.dialName(slot)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	pid, err := checkPeer(c)
	if err != nil {
		return nil, err
	}
	if hasEnded(pid) {
		return nil, fmt.Errorf("process %d has ended, but its children hold the name", pid)
	}
	_ = c.SetDeadline(time.Now().Add(replyTimeout)) // fails if closed, like Write
	if _, err := c.Write([]byte{requestSockets, protocolVersion}); err != nil {
		return nil, err
	}
	reply := make([]byte, 1)
	control := make([]byte, unix.CmsgSpace(4*(Slots+1)))
	n, controlLen, _, _, err := c.ReadMsgUnix(reply, control)
	if err != nil {
		return nil, fmt.Errorf("process %d does not hand out the sockets: %w", pid, err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:controlLen])
	if err != nil {
		return nil, err
	}
	for i := range messages {
		if rights, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, rights...)
		}
	}
	switch {
	case n != 1: // the process is about to end
		err = fmt.Errorf("process %d: no reply", pid)
	case reply[0] != protocolVersion:
		err = fmt.Errorf("%w: process %d has version %d, this process %d", ErrVersion, pid, reply[0], protocolVersion)
	case len(fds) != Slots+1:
		err = fmt.Errorf("process %d: %d of %d descriptors received; raise the limit of open files (ulimit -n)", pid, len(fds), Slots+1)
	}
	if err != nil {
		closeAll(fds)
		return nil, err
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
