// Package cm establishes and releases RDMA connections between queue pairs with the messages of
// the InfiniBand communication manager (REQ, REP, RTU, REJ, DREQ, DREP), as RDMA-CM of Linux
// does. The messages travel between queue pairs 1 of two adapters. The peer can be a program
// with this package or with librdmacm.
//
// # Use
//
// A Manager belongs to a device. One side listens on an RDMA-CM port, which is not a UDP port:
// all RDMA-CM ports share the adapter's UDP port:
//
//	m, err := cm.New(dev, cm.Options{})
//	l, err := m.Listen(7471, cm.ListenOptions{})
//	for {
//		r, err := l.Accept(ctx)          // a REQ arrives
//		go func() {
//			qp, err := pd.CreateQP(...)
//			conn, err := r.Accept(ctx, qp, cm.AcceptOptions{PrivateData: hello, Receives: receives})
//			...                          // or r.Reject(cm.ConsumerReject, private)
//		}()
//	}
//
// The other side dials:
//
//	conn, err := m.Dial(ctx, netip.MustParseAddrPort("192.0.2.1:7471"), qp, cm.DialOptions{Receives: receives})
//	...                                  // conn.QP() is in StateRTS on both sides
//	err = conn.Close()                   // or <-conn.Done() if the peer disconnects
//
// Receives are posted with the queue pair in StateInit, before the peer can send. Without them
// the first message of the peer may find no receive, and the RNR NAK costs 0.6 ms to 0.6 s.
//
// Datagrams need no connection, only the peer's queue pair number and Q_Key, which
// [Manager.ListenUD] and [Manager.DialUD] exchange by SIDR.
//
// # Ownership
//
// The caller owns queue pairs: the manager moves them through their states, and to StateErr when
// the connection ends, but never destroys them. The manager owns queue pair 1 of the device, so
// a device has one manager.
//
// # Errors
//
// A rejection by the peer is a [*RejectError] with its reason. A peer that does not reply causes
// [ErrUnreachable], at once if the system refuses to send to it (the error is then a
// *[verbs.RefusedError], too). The manager drops and counts malformed and foreign datagrams
// ([Manager.Stats]).
//
// # How a message travels
//
//	Manager.Dial                 dial.go                  Listener.Accept         listener.go
//	   | REQ                                                 ^ a queued REQ
//	   v                                                     |
//	protocol.Machine             internal/protocol        enqueueRequest          listener.go
//	   | retransmits, checks replies                         ^
//	   v                                                     |
//	dispatchAndFlush             manager.go               dispatchEvent           manager.go
//	   v                                                     ^
//	gsi.send, queue pair 1       gsi.go                   protocol.Machine        internal/protocol
//	   |                                                     ^
//	   +------------------- MAD in a datagram ------------> gsi.parseDatagram     gsi.go
//
// The reply takes the same way back, from Request.Accept (accept.go) to the eventHandler of the
// dial (dialop.go). One goroutine of the manager (Manager.run) receives and runs the timers.
package cm
