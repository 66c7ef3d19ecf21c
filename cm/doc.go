// Package cm makes and ends connections between queue pairs, as RDMA-CM of
// Linux does: by REQ, REP, RTU, REJ, DREQ and their like between queue pairs 1
// of two adapters. The peer can be another program with this package, or any
// that uses librdmacm.
//
// # Use
//
// A Manager belongs to a device. One side listens on a port of RDMA-CM (which
// is no UDP port: all of them share the adapter's):
//
//	m, err := cm.New(dev, cm.Options{})
//	l, err := m.Listen(7471, cm.ListenOptions{})
//	for {
//		r, err := l.Accept(ctx)          // a peer asks
//		go func() {
//			qp, err := pd.CreateQP(...)
//			conn, err := r.Accept(ctx, qp, cm.AcceptOptions{PrivateData: hello, Prepare: postReceives})
//			...                          // or r.Reject(why)
//		}()
//	}
//
// The other dials:
//
//	conn, err := m.Dial(ctx, netip.MustParseAddrPort("192.0.2.1:7471"), cm.DialOptions{QP: qp, Prepare: postReceives})
//	...                                  // conn.QP() is in StateRTS on both sides
//	err = conn.Disconnect(ctx)           // or <-conn.Done(): the peer did
//
// Prepare is called when the queue pair has reached StateInit and before the
// peer can send: the place to post receives. A connection without one loses
// 0.6 ms to 0.6 s with the first message of an eager peer.
//
// Datagrams need no connection but the peer's queue pair number and Q_Key:
// [Manager.ListenUD] and [Manager.DialUD] tell them.
//
// # Who owns what
//
// Queue pairs are the caller's: the manager takes them through their states
// and to StateErr at the end of a connection, and never destroys them. The
// manager owns queue pair 1 of the device, so there is one manager a device.
//
// # Errors
//
// A refusal by the peer is a [*RejectError] with its reason; a peer that does
// not answer is [ErrUnreachable], at once where the system refuses to send to it (then it is
// a *[verbs.RefusedError], too). Bad and foreign datagrams are dropped and
// counted, see [Manager.Stats].
package cm
