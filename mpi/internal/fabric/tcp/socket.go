package tcp

import "net"

// A socket is the socket of a connection. It is used with the engine's lock held, except
// for readOnce.
type socket interface {
	// readOnce reads once, and returns 0 if nothing has arrived. One goroutine calls it at a
	// time, not after closeFD.
	readOnce(b []byte) (int, error)

	// writeSome writes as much of a list of buffers as the system accepts, possibly nothing.
	writeSome(list [][]byte) (int, error)

	// awaitWritable makes link.continueWriting be called once the system accepts more, or
	// no longer.
	awaitWritable(on bool)

	// endConn ends the connection, so that readOnce returns an error. closeFD follows.
	endConn()

	closeFD() error
}

// A poller owns the sockets of all connections, so that the goroutine that waits for a
// message polls them itself. Without one, as on systems other than Linux, each socket has
// a goroutine that reads and one that writes data that the system did not accept at once.
type poller interface {
	// addConn makes the socket of conn one of the poller's, and closes conn.
	addConn(conn *net.TCPConn, rank int) (socket, error)

	// waitEvents returns the number of sockets with events. Unless poll is set it waits until
	// there are some, or until wakeWaiter is called. One goroutine calls it at a time.
	waitEvents(poll bool) (int, error)

	// eventAt returns the rank and the state of one of the sockets that waitEvents has found.
	eventAt(i int) (rank int, readable, writable bool)

	wakeWaiter()

	// closeSet is called when no other call is in progress and all sockets are closed.
	closeSet()
}
