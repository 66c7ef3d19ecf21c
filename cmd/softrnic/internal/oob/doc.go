// Package oob is the out-of-band TCP connection over which two test programs exchange
// the addresses of their queue pairs before a test.
//
// A client dials. A server listens and accepts the first client that sends a valid hello
// message. Many clients may be in the handshake at a time, so a silent client blocks
// no other; clients that are silent or send invalid bytes are dropped:
//
//	l, err := oob.Listen(netip.Addr{}, 18515)
//	defer l.Close()
//	accept := func(ctx context.Context) (*oob.Conn, error) { return l.Accept(ctx, 10*time.Second) }
//	conn, hello, err := oob.AcceptFirst(ctx, accept, readHello, func(err error) { log.Print(err) })
//	defer conn.Close()
//	err = conn.Write(reply, "reply")
//
// Every read and write ends within the connection's timeout or with the context. Errors
// are a [*PeerError] around [ErrTimeout], [ErrPeerClosed] or [ErrProtocol].
//
// The original programs read each message with one read(2), so each message leaves with
// one Write. Reads accept a message in any number of segments.
package oob
